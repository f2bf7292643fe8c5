"""Modules that take long to import, without a stop of the loop. Knows no module."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading


def imported(name: str) -> asyncio.Future[None]:
    """Done when a module is imported, in a thread of its own: the loop stays free, and leaving waits for nobody.

    Awaiting it raises ImportError.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: ImportError | None) -> None:
        if not done.done():
            done.set_exception(error) if error else done.set_result(None)

    def work() -> None:
        error: ImportError | None = None
        try:
            importlib.import_module(name)
        except ImportError as missing:
            error = missing
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=work, name="import", daemon=True).start()
    return done
