"""The place where servers meet: its lock, its note, and what makes two places one."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from remask.contract.places import config_dir
from remask.lsp_server import engine_share
from remask.lsp_server.engine_share import Place


def left_in(folder: Path) -> list[Path]:
    return [*folder.glob("engine-*")]


@pytest.fixture
def listener(runtime_dir: Path) -> Iterator[Path]:
    """A socket that somebody listens on."""
    runtime_dir.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(runtime_dir / "other.sock"))
        one.listen()
        yield runtime_dir / "other.sock"


def bound(path: Path) -> Path:
    """A socket whose process has died."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
    return path


def test_what_is_left_of_the_dead_is_no_engine(runtime_dir: Path, listener: Path) -> None:
    first, second = Place(["x"]), Place(["x"])
    assert first.take()
    assert not second.take()
    assert second.find() is None, "it is not ready yet"
    first.publish(str(runtime_dir / "no.sock"), os.getpid())
    assert second.find() is None, "nobody listens"
    (note,) = runtime_dir.glob("*.json")
    odd = ("", "[]", "{}", "[" * 100_000, '{"socket": "x", "pid": Infinity}')
    for nonsense in (*odd, '{"socket": "x", "pid": 99999999}', '{"socket": 1, "pid": "x"}'):
        note.write_text(nonsense)
        assert second.find() is None
    note.write_text(json.dumps({"socket": str(listener), "pid": os.getpid()}))
    assert second.find() is not None, "it runs and listens"
    assert first._lock is not None
    first._lock.close()  # as the system does for a dead server
    assert not second.take(), "its engine goes on"
    note.write_text(json.dumps({"socket": str(bound(runtime_dir / "dead.sock")), "pid": os.getpid()}))
    assert second.find() is None, "its number is that of another process now"
    assert second.take()
    assert Place(["x"]).take() is False
    assert second.find() is None
    second.leave()


def test_a_lock_that_its_holder_removed_meanwhile_is_no_lock(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who leaves removes the file, and another may have opened it just before."""
    first, second, third = Place(["x"]), Place(["x"]), Place(["x"])
    assert first.take()
    lock = engine_share._locks

    def locks_after_the_holder_left(file: IO[str]) -> bool:
        monkeypatch.setattr(engine_share, "_locks", lock)
        first.leave()
        assert third.take()
        return lock(file)

    monkeypatch.setattr(engine_share, "_locks", locks_after_the_holder_left)
    assert not second.take(), "it is the third's"
    third.leave()
    assert second.take()
    second.leave()
    assert not left_in(runtime_dir)


def test_a_note_that_cannot_be_written_leaves_nothing(runtime_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, text: str, *_: object) -> None:
        path.write_bytes(text[:3].encode())
        raise OSError(errno.ENOSPC, "No space left on device")

    place = Place(["x"])
    assert place.take()
    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="No space"):
        place.publish("x", 1)
    place.leave()
    assert not left_in(runtime_dir)


def test_only_a_server_that_is_awake_loads_an_engine(listener: Path, sleeper: psutil.Popen) -> None:
    owner, guest = Place(["x"]), Place(["x"])
    assert owner.take()
    assert not guest.take()
    assert not guest.is_loading(), "nothing says so"
    socket = str(listener)
    owner.publish(socket, os.getpid(), loading=True)
    assert guest.is_loading()
    assert guest.find() is None, "it is not ready"
    (note,) = listener.parent.glob("*.json")
    for nonsense in ("x", None, -1, 10**30, 99_999_999, [1]):
        note.write_text(json.dumps({"socket": socket, "pid": os.getpid(), "loading_for": nonsense}))
        assert not guest.is_loading()
    note.write_text(json.dumps({"socket": socket, "pid": os.getpid(), "loading_for": sleeper.pid}))
    assert guest.is_loading()
    sleeper.suspend()
    while sleeper.status() != psutil.STATUS_STOPPED:
        pass
    assert not guest.is_loading(), "it will not say when it is ready"
    owner.publish(socket, os.getpid())
    assert not guest.is_loading()
    assert guest.find() is not None
    owner.leave()


@pytest.mark.parametrize("named_by", ["command", "choice"])
def test_what_was_trained_again_in_its_folder_is_another(runtime_dir: Path, tmp_path: Path, named_by: str) -> None:
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    if named_by == "choice":
        (config_dir() / "model.json").write_text(json.dumps({"adapter": str(folder)}))
    command = ["x", "--adapter", str(folder)] if named_by == "command" else ["x"]
    keys = [Place(command)._key() for _ in range(2)]
    os.utime(folder / "weights", ns=(5, 5))
    keys.append(Place(command)._key())
    (folder / "weights").write_bytes(b"22")
    os.utime(folder / "weights", ns=(5, 5))
    keys.append(Place(command)._key())
    (folder / "more").touch()
    keys.append(Place(command)._key())
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


@pytest.mark.parametrize("choice", ["", "[]", "{", '{"model": 1}', '{"model": "\\u0000"}', "[" * 100_000])
def test_a_damaged_choice_is_no_obstacle(runtime_dir: Path, choice: str) -> None:
    (config_dir() / "model.json").write_text(choice)
    place = Place(["x"])
    assert place.take()
    place.leave()


def test_a_dead_link_among_the_users_choices_is_no_obstacle(runtime_dir: Path) -> None:
    """Nor is a file that is replaced just then."""
    link = config_dir() / "notes"
    link.symlink_to("nowhere")
    place = Place(["x"])
    assert place.take()
    place.leave()
    link.unlink()
