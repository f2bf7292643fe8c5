"""What all tests share: private folders for state, and the default model loaded once."""

import os

import hypothesis
import pytest

# Triton runs kernels on CPU tensors if told so before its first import, and not only the kernels' tests import it.
os.environ["TRITON_INTERPRET"] = "1"

hypothesis.settings.register_profile("remask", deadline=None)  # a busy machine is not a defect
hypothesis.settings.load_profile("remask")


@pytest.fixture(scope="session")
def _native_folder(tmp_path_factory):
    """The C pass is compiled once for all tests and their processes."""
    return tmp_path_factory.mktemp("native")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory, monkeypatch, _native_folder):
    """No test reads or writes the user's cache and runtime folders."""
    monkeypatch.setenv("REMASK_NATIVE_DIR", str(_native_folder))
    monkeypatch.setenv("REMASK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("REMASK_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("REMASK_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="session")
def default_model():
    """The default model in float32, where decoding is exact."""
    from remask.engine.models.model import Model

    return Model.load(dtype="float32")
