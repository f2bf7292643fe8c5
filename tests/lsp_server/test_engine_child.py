"""The engine's process: what it is started with, and what of its surroundings it never gets."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from remask.lsp_server.engine_child import EngineChild, service_command
from remask.lsp_server.options import ServerOptions


def test_a_folder_that_is_opened_cannot_put_its_own_modules_into_the_engine(tmp_path: Path) -> None:
    """`python -m` would put the current folder first on the module path: `json.py` of any project would run."""
    (tmp_path / "argparse.py").write_text("open('ran', 'w').close()")
    command = service_command(ServerOptions())
    subprocess.run([*command, "--help"], cwd=tmp_path, capture_output=True, timeout=60)
    assert not (tmp_path / "ran").exists()


async def test_the_engine_does_not_run_in_the_folder_that_is_opened(runtime_dir: Path) -> None:
    child = EngineChild([sys.executable, str(Path(__file__).with_name("fake_service.py"))])
    await child.start()
    assert psutil.Process(child.pid).cwd() != os.getcwd()
    await child.stop()


def test_the_engine_is_told_of_model_and_adapter() -> None:
    options = ServerOptions(model=Path("/models/m"), adapter=Path("/adapters/a"))
    assert service_command(options)[-4:] == ["--model", "/models/m", "--adapter", "/adapters/a"]


def test_the_engine_is_told_of_steering_vectors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    command = service_command(ServerOptions(steer=("/v/a.safetensors:2", "b.safetensors")))
    assert command[-4:] == ["--steer", "/v/a.safetensors:2", "--steer", str(tmp_path / "b.safetensors")]


def test_a_relative_folder_means_the_same_to_servers_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Servers of the same command share an engine."""
    monkeypatch.chdir(tmp_path)
    command = service_command(ServerOptions(model=Path("m"), adapter=Path("a")))
    assert command[-4:] == ["--model", str(tmp_path / "m"), "--adapter", str(tmp_path / "a")]
