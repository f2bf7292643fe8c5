"""Downloads, with pip played by the test: trusted by hash only, kept for the next time, never half there."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from remask.contract.errors import InputError, StorageError
from remask.engine.training.corpus import download
from remask.engine.training.corpus.pins import Pin

CONTENT = b"a wheel"
HASH = hashlib.sha256(CONTENT).hexdigest()


def pin(file="toolz-1.0-py3-none-any.whl", sha256=HASH):
    return Pin("toolz", "1.0", file, sha256, "MIT")


@pytest.fixture
def pip(monkeypatch):
    """A pip that writes CONTENT under the pinned name, or fails as told; counts its calls."""

    class FakePip:
        calls, stderr, name, content = 0, "", "toolz-1.0-py3-none-any.whl", CONTENT

        def __call__(self, command, **_):
            self.calls += 1
            if not self.stderr:
                Path(command[command.index("--dest") + 1], self.name).write_bytes(self.content)
            return subprocess.CompletedProcess(command, int(bool(self.stderr)), "", self.stderr)

    fake = FakePip()
    monkeypatch.setattr(download.subprocess, "run", fake)
    return fake


def test_a_second_build_needs_no_network(pip):
    folder = download.wheel_folder()
    first = download.fetch(pin(), folder)
    assert first.read_bytes() == CONTENT
    assert download.fetch(pin(), folder) == first
    assert pip.calls == 1


def test_a_damaged_file_in_the_cache_is_fetched_again(pip):
    folder = download.wheel_folder()
    (folder / pin().file).write_bytes(b"damaged")
    assert download.fetch(pin(), folder).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("name", "content", "stderr", "error", "says"),
    [
        (pin().file, b"other", "", InputError, "another hash"),
        ("toolz-1.0-cp311-cp311-win32.whl", CONTENT, "", InputError, "not as toolz-1.0-py3"),
        ("", b"", "ERROR: No matching distribution found for toolz==1.0", InputError, "No matching distribution"),
        ("", b"", "", InputError, "without a word"),
        ("", b"", "OSError: [Errno 28] No space left on device", StorageError, "no room"),
    ],
)
def test_failures_say_why_and_leave_nothing(pip, name, content, stderr, error, says):
    pip.name, pip.content, pip.stderr = name, content, stderr or ("" if name else "\n")
    folder = download.wheel_folder()
    with pytest.raises(error, match=says):
        download.fetch(pin(), folder)
    assert not list(folder.iterdir())


def test_an_interrupt_leaves_nothing(monkeypatch):
    def interrupted(command, **_):
        Path(command[command.index("--dest") + 1], "half").write_bytes(b"h")
        raise KeyboardInterrupt

    monkeypatch.setattr(download.subprocess, "run", interrupted)
    folder = download.wheel_folder()
    with pytest.raises(KeyboardInterrupt):
        download.fetch(pin(), folder)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("toolz-1.0-py3-none-any.whl", []),
        (
            "a-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            [
                "--platform=manylinux_2_17_x86_64",
                "--platform=manylinux2014_x86_64",
                "--implementation=cp",
                "--abi=cp311",
                "--python-version=3.11",
            ],
        ),
    ],
)
def test_the_very_wheel_is_asked_for_and_nothing_is_built(file, options, tmp_path):
    command = download.pip_arguments(pin(file), tmp_path)
    assert command[:4] == [sys.executable, "-P", "-m", "pip"]
    assert {"--no-deps", "--only-binary=:all:"} < set(command)
    assert [o for o in command if o.startswith(("--platform", "--impl", "--abi", "--python"))] == options
    assert command[-1] == "toolz==1.0"
