"""The engine's process as its parent sees it: started, ready, gone. Knows no HTTP and no requests.

The child reads nothing from its standard input; it ends when that closes, unless other servers use it: then it goes on
for them. So no engine is left behind, in whatever way this process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from remask.contract.errors import EngineError, RemaskError
from remask.contract.places import runtime_dir
from remask.lsp_server.options import ServerOptions

log = logging.getLogger(__name__)

READY_WITHIN_S = 180.0  # a large model from a slow disk
GONE_WITHIN_S = 0.6  # after its input is closed, to save what it read; then it is killed

_numbers = itertools.count(1)


def service_command(options: ServerOptions) -> list[str]:
    """The command that starts the engine with these options, but for its socket; the same wherever it is started."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "remask.engine.service",
        "--device",
        options.device,
        "--dtype",
        options.dtype,
    ]
    if options.model is not None:
        command += ["--model", str(options.model.absolute())]
    if options.adapter is not None:
        command += ["--adapter", str(options.adapter.absolute())]
    for vector in options.steer:
        command += ["--steer", str(Path(os.path.expanduser(vector)).absolute())]
    return command


class EngineChild:
    """One run of the engine's process. `socket` is where it listens once `start` has returned."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None
        self._is_ready = False
        self._stays = asyncio.Event()  # it has said that it goes on for others
        self.socket = ""

    @property
    def pid(self) -> int | None:
        """The process id, once there is a process."""
        return self._process.pid if self._process else None

    async def start(self, on_begun: Callable[[], None] = lambda: None, note: Path | None = None) -> None:
        """Start the process and wait until it is ready; `on_begun` is called once there is a process.

        `note` is the file that tells others of it. Raises RemaskError with what it says if it cannot.
        """
        folder = runtime_dir()
        self.socket = str(folder / f"{os.getpid()}-{next(_numbers)}.sock")
        shared = ["--shared-as", str(note)] if note is not None else []
        try:
            with passed_on() as stderr:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    "--socket",
                    self.socket,
                    *shared,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=stderr,
                    cwd=folder,  # not the folder that is open in an editor, which holds anybody's code
                    start_new_session=True,  # what ends the editor's own processes ends none that others use
                )
        except OSError as error:
            raise EngineError(f"The engine's process cannot be started: {error.strerror or error}.") from error
        on_begun()
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                line = await self._stdout.readline()
        except TimeoutError:
            raise EngineError(f"The engine was not ready after {READY_WITHIN_S:.0f} s.") from None
        ready = _check(line)
        log.info("the engine is ready: %s", {key: ready[key] for key in ("model", "device", "dtype") if key in ready})
        self._drain = asyncio.ensure_future(self._read_on())
        self._is_ready = True

    async def wait(self) -> None:
        """Wait until the process is gone."""
        assert self._process is not None
        await self._process.wait()

    def kill(self) -> None:
        """End the process at once; `wait` returns then."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def stop(self) -> bool:
        """End the process and wait for it, unless it goes on for others, which is told by True.

        Fine if it has ended or was never started.
        """
        process = self._process
        if process is None:
            return False
        if process.stdin is not None:
            process.stdin.close()
        if not self._is_ready:  # there is nothing to save
            self.kill()
        end, stays = asyncio.ensure_future(process.wait()), asyncio.ensure_future(self._stays.wait())
        try:
            await asyncio.wait((end, stays), timeout=GONE_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            if self._stays.is_set() and not end.done():
                _others.add(process)
                end.add_done_callback(lambda end: None if end.cancelled() else _others.discard(process))
                return True
            if not end.done():
                self.kill()
            await end
        finally:
            stays.cancel()
            if self._drain is not None:
                self._drain.cancel()
        with contextlib.suppress(OSError):
            os.unlink(self.socket)
        return False

    @property
    def _stdout(self) -> asyncio.StreamReader:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout

    async def _read_on(self) -> None:
        """Read what comes after the ready line."""
        while line := await self._stdout.readline():
            if line.strip() == b'{"stays": true}':
                self._stays.set()


_others: set[asyncio.subprocess.Process] = set()
"""Processes that go on for others: one that is forgotten, as at the end of the loop, is killed by asyncio."""


@contextlib.contextmanager
def passed_on() -> Iterator[int]:
    """A descriptor of which all that is written there goes to our standard error, until the last writer closes it.

    A process that outlives this one must not hold what an editor may wait for: the end of our standard error.
    """
    reader, writer = os.pipe()

    def copy() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(reader, 65_536):
                os.write(2, data)
        os.close(reader)

    threading.Thread(target=copy, name="engine's log", daemon=True).start()
    try:
        yield writer
    finally:
        os.close(writer)


def _check(line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if isinstance(values, dict) and values.get("ready") is True:
        return values
    error = values.get("error") if isinstance(values, dict) else None
    if not isinstance(error, dict):
        raise EngineError("The engine ended before it was ready.", advice="Run 'remask doctor' to see why.")
    raise RemaskError.from_dict(error)
