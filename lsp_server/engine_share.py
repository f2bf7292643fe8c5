"""One engine for all servers of a user that want the same one: who starts it, and how the others find it.

The server that holds a place's lock starts the engine and writes down where it listens; the others read that and join
it. The lock is the system's, so it is free as soon as its holder is gone, however that went. An engine goes on as long
as one of its servers wants it: the one that has started it holds its standard input, each other one a connection.
Knows processes and files, no requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import platform
import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import psutil

from remask.contract.places import config_dir, runtime_dir
from remask.lsp_server.version import own_version

JOINS_WITHIN_S = 5.0  # it answers at once
LOOK_AGAIN_S = 0.1  # for an engine that another server is starting
WATCH_S = 1.0  # between two looks at whether another server's engine still runs; a request that fails looks at once


class Place:
    """Where the servers that want the engine of one command meet. Its methods raise OSError and StorageError."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._lock: IO[str] | None = None
        self.note = Path()  # of the run that was last begun

    def take(self) -> bool:
        """Whether it is this server that has to start the engine, from now until `leave`."""
        if self._lock is not None:
            return True
        self.note = runtime_dir() / f"engine-{self._key()}.json"
        path = self.note.with_suffix(".lock")
        lock = path.open("a")
        is_ours = False
        try:
            is_ours = _locks(lock) and _is_at(lock, path)
            # The engine that a note tells of goes on without whoever has started it.
            if is_ours and self.find() is None:
                self.note.unlink(missing_ok=True)  # a holder that died has left it; its number may be another's now
                self._lock = lock
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            if self._lock is None:
                if is_ours:
                    path.unlink(missing_ok=True)
                lock.close()
        return self._lock is not None

    def publish(self, socket: str, pid: int, *, loading: bool = False) -> None:
        """Tell the others where the engine listens, or that it loads."""
        values: dict[str, str | int] = {"socket": socket, "pid": pid}
        if loading:
            values["loading_for"] = os.getpid()
        new = self.note.with_suffix(f".{os.getpid()}")
        try:
            new.write_text(json.dumps(values), "utf-8")
            new.replace(self.note)
        finally:
            new.unlink(missing_ok=True)

    def find(self) -> JoinedEngine | None:
        """The engine that another server has started, if it runs and is ready."""
        engine, loading_for = self._read()
        if engine is None or loading_for is not None:
            return None
        return engine if engine.runs and _listens(engine.socket) else None

    def is_loading(self) -> bool:
        """Whether another server's engine loads, and that server is there to say when it is ready."""
        engine, loading_for = self._read()
        return loading_for is not None and engine is not None and all(map(_is_awake, (engine.pid, loading_for)))

    def _read(self) -> tuple[JoinedEngine | None, int | None]:
        """What the note says, if that is about a process: the engine, and whom it loads for."""
        try:
            values = json.loads(self.note.read_text("utf-8"))
            loading_for = int(values["loading_for"]) if "loading_for" in values else None
            return JoinedEngine(str(values["socket"]), int(values["pid"])), loading_for
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, psutil.Error):
            return None, None

    def leave(self, *, stays: bool = False) -> None:
        """Let another server start the next engine; `stays` if there is one still, which is to be found."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                if not stays:
                    self.note.unlink(missing_ok=True)
                self.note.with_suffix(".lock").unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

    def _key(self) -> str:
        """Tells the command, our version, what the user has chosen (`remask model use`) and whose process ids count.

        And the files that the command or the choice names, or that lie in folders of these names: a model, an adapter
        or a steering vector that was trained again is another one.
        """
        chosen = _files_in(str(config_dir()))
        trained = [line for folder in (*self._command, *_chosen_folders()) for line in _files_in(folder)]
        # The folder may be shared with containers and other machines, where our number is another process.
        words = "\0".join([*self._command, own_version(), platform.node(), *chosen, *trained])
        return hashlib.sha256(words.encode("utf-8", "backslashreplace")).hexdigest()[:12]


class JoinedEngine:
    """A run of the engine that another server has started; like an EngineChild, but that it is not ours to end.

    After `join` it goes on until `stop`, whatever becomes of that server.
    """

    def __init__(self, path: str, pid: int) -> None:
        self.socket = path
        self.pid: int | None = pid
        self._process = psutil.Process(pid)  # knows it from a later one with this number
        self._turned_away = False
        self._wake = asyncio.Event()
        self._hold: asyncio.StreamWriter | None = None

    async def join(self) -> bool:
        """Let it stay for us; False where it leaves just now, or does not answer."""
        try:
            async with asyncio.timeout(JOINS_WITHIN_S):
                reader, self._hold = await asyncio.open_unix_connection(self.socket)
                self._hold.write(b"GET /v1/stay HTTP/1.1\r\nHost: engine\r\n\r\n")
                head = await reader.readuntil(b"\r\n\r\n")
        except (OSError, EOFError, ValueError, TimeoutError):
            head = b""
        if head.split(b" ")[1:2] != [b"200"]:
            await self.stop()
            return False
        return True

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        try:
            return bool(self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False

    async def wait(self) -> None:
        """Wait until the process is gone, or until we have turned away from it."""
        while self.runs and not self._turned_away:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), WATCH_S)

    def look(self) -> None:
        """Let `wait` look at once."""
        self._wake.set()

    def kill(self) -> None:
        """Turn away from it."""
        self._turned_away = True
        self._wake.set()

    async def stop(self) -> bool:
        """Want it no more. True, since whether it ends then is not ours to say."""
        if self._hold is not None:
            self._hold.close()
            self._hold = None
        return True


def can_share() -> bool:
    """Whether this system has the locks that sharing needs."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


def _locks(file: IO[str]) -> bool:
    """Whether the lock is ours now. Raises OSError where the file system has no locks."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _listens(path: str) -> bool:
    """Whether somebody listens on a socket, or may."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect(path)
        except TimeoutError:
            return True
        except OSError:
            return False
    return True


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is the one that is there now: who held it before has removed the one that we waited for."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _is_awake(pid: int | None) -> bool:
    """Whether a process is there and was not stopped, as a debugger or Ctrl-Z does."""
    asleep = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD, psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    try:
        return psutil.Process(pid).status() not in asleep
    except (psutil.Error, ValueError, OverflowError):
        return False


def _chosen_folders() -> list[str]:
    """The texts in what `remask model use` has written; nothing if it is damaged, which the engine says."""
    try:
        values = json.loads((config_dir() / "model.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [value for value in values.values() if isinstance(value, str)] if isinstance(values, dict) else []


def _files_in(folder: str) -> list[str]:
    """Names, sizes and times of the files in a folder, or of a file; nothing of one that is not there any more."""
    lines: list[str] = []
    try:
        named = re.sub(r":[-+.\w]*$", "", folder)  # a steering vector's strength
        for path in {folder, named} - {sys.executable}:
            if os.path.isfile(path):
                lines.append(f"{os.stat(path).st_size} {os.stat(path).st_mtime_ns}")
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file():
                    lines.append(f"{entry.name} {entry.stat().st_size} {entry.stat().st_mtime_ns}")
    except (OSError, ValueError):
        pass
    return lines
