"""The engine's process as its parent sees it: started, ready, gone. Knows no HTTP and no requests.

The child reads nothing from its standard input; it ends when that closes. So it dies with this process, in whatever way
this one ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
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
        command += ["--steer", str(Path(vector).expanduser().absolute())]
    return command


class EngineChild:
    """One run of the engine's process. `socket` is where it listens once `start` has returned."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None
        self._is_ready = False
        self.socket = ""

    @property
    def pid(self) -> int | None:
        """The process id, once there is a process."""
        return self._process.pid if self._process else None

    async def start(self, on_begun: Callable[[], None] = lambda: None) -> None:
        """Start the process and wait until it is ready; `on_begun` is called once there is a process.

        Raises RemaskError with what it says if it cannot.
        """
        folder = runtime_dir()
        self.socket = str(folder / f"{os.getpid()}-{next(_numbers)}.sock")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                "--socket",
                self.socket,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd=folder,  # not the folder that is open in an editor, which holds anybody's code
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

    async def stop(self) -> None:
        """End the process and wait for it; fine if it has ended or was never started."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if not self._is_ready:  # there is nothing to save
            self.kill()
        try:
            async with asyncio.timeout(GONE_WITHIN_S):
                await process.wait()
        except TimeoutError:
            self.kill()
            await process.wait()
        if self._drain is not None:
            self._drain.cancel()
        with contextlib.suppress(OSError):
            os.unlink(self.socket)

    @property
    def _stdout(self) -> asyncio.StreamReader:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout

    async def _read_on(self) -> None:
        """Read what comes after the ready line, so that the child never waits for us."""
        while await self._stdout.read(65_536):
            log.debug("the engine wrote to its standard output")


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
