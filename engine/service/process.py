"""The life of the engine process: load, bind, say so, serve, leave. Knows sockets and signals, never the model.

It lives as long as its standard input stays open. Whoever started it holds the other end, so the system closes
it when that process dies in whatever way, and no engine is left behind. Where others use it then (see guests) it says
so and goes on until the last of them is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import IO, Any

from remask.contract.errors import EngineError, RemaskError, StorageError
from remask.engine.service.completer import Completer
from remask.engine.service.guests import Guests

log = logging.getLogger(__name__)

GRACE_S = 0.5  # from the wish to leave to os._exit
STALE_AFTER_S = 10.0  # a socket this old that nobody listens on belongs to the dead


def serve(path: Path, load: Callable[[], Completer], note: Path | None = None) -> int:
    """Load the engine, serve it on the socket at `path`, and return the exit code when asked to leave.

    Writes one JSON line to standard output: `{"ready": true, ...}` or `{"error": {...}}`; and `{"stays": true}` when
    standard input ends and it goes on for others. Nothing else is written there: descriptor 1 is turned to standard
    error, for libraries that print. `note` is where others find the engine; it is removed when that is over.
    """
    life = _Life(path, note)
    with _claim_stdout() as answer:
        threading.Thread(target=life.wait_for_parent, args=(answer,), name="parent", daemon=True).start()
        try:
            return asyncio.run(_serve(life, load, answer))
        except RemaskError as error:
            return _refuse(answer, error)
        except Exception as error:
            return _refuse(answer, EngineError(f"The engine could not start: {error}."))
        finally:
            life.leave_no_trace()


class _Life:
    """What the process leaves behind, and when it ends; `leaving` is set when it has to."""

    def __init__(self, path: Path, note: Path | None) -> None:
        self.path = path
        self.guests = Guests()
        self.leaving = threading.Event()
        self._note = note

    def wait_for_parent(self, answer: IO[str]) -> None:
        """Wait for the end of standard input and of all guests, then leave: kindly at first, at once after a while."""
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        if self.guests:
            _say(answer, {"stays": True})
            self.guests.wait_for_none()
        self.leaving.set()
        time.sleep(GRACE_S)
        self.leave_no_trace()
        os._exit(0)

    def be_found_no_more(self) -> None:
        """Remove the note while the socket is open still: who finds none of both may write another note."""
        if self._note is not None:
            with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
                if json.loads(self._note.read_text("utf-8")).get("pid") == os.getpid():
                    self._note.unlink()

    def leave_no_trace(self) -> None:
        """Remove the note and the socket."""
        self.be_found_no_more()
        self.path.unlink(missing_ok=True)


async def _serve(life: _Life, load: Callable[[], Completer], answer: IO[str]) -> int:
    from aiohttp import web

    from remask.engine.service.app import make_app
    from remask.engine.service.worker import ModelWorker

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    _on_leaving(loop, stop, life.leaving)
    remove_stale_sockets(life.path.parent)
    worker = ModelWorker(load)
    description = await _first(worker.start(), stop)
    if description is None:
        return 0
    runner = web.AppRunner(
        make_app(worker, description, life.guests),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=GRACE_S / 4,
    )
    await runner.setup()
    try:
        await _bind(runner, life.path)
        _say(answer, {"ready": True, "pid": os.getpid(), "socket": str(life.path), **description})
        await stop.wait()
    finally:
        life.be_found_no_more()
        worker.stop()
        saving = asyncio.ensure_future(worker.stopped(GRACE_S))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(runner.cleanup(), GRACE_S / 2)
        await saving
    return 0


async def _first(loading: Coroutine[Any, Any, Mapping[str, Any]], stop: asyncio.Event) -> Mapping[str, Any] | None:
    """What `loading` returns, or None when `stop` is set before. Raises what `loading` raises."""
    load, end = asyncio.ensure_future(loading), asyncio.ensure_future(stop.wait())
    await asyncio.wait((load, end), return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if load.done():
        return load.result()
    load.cancel()
    return None


def remove_stale_sockets(folder: Path) -> None:
    """Remove the sockets in `folder` that nobody listens on any more."""
    for path in folder.glob("*.sock"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_AFTER_S and _is_dead(path):
                path.unlink()


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


async def _bind(runner: Any, path: Path) -> None:
    from aiohttp import web

    # The mask holds for all threads; the only other busy one, the model's, waits for its first request.
    mask = os.umask(0o177)
    try:
        await web.UnixSite(runner, path).start()
    except OSError as error:
        raise StorageError(
            f"The socket {path} cannot be made: {error.strerror or error}.",
            advice="Set REMASK_RUNTIME_DIR to a folder that you may write to.",
        ) from error
    finally:
        os.umask(mask)


def _on_leaving(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, leaving: threading.Event) -> None:
    """Let the parent's end and the usual signals set `stop`."""

    def wait() -> None:
        leaving.wait()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, name="leave", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, ValueError):  # no such handlers on Windows
            loop.add_signal_handler(number, stop.set)


def _claim_stdout() -> IO[str]:
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answer


def _refuse(answer: IO[str], error: RemaskError) -> int:
    from remask.engine.service.app import error_body

    _say(answer, error_body(error))
    return error.exit_code


def _say(answer: IO[str], values: Mapping[str, Any]) -> None:
    try:
        answer.write(json.dumps(values) + "\n")
        answer.flush()
    except OSError:
        log.debug("nobody reads the answer")


def leave(code: int) -> None:
    """End the process without waiting for the model thread, which may be deep in native code."""
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)
