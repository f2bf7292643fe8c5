"""Ends the server when the editor that started it is gone. Knows process ids only.

Standard input ends with most editors; not if another process of the editor still holds the pipe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

EVERY_S = 0.5


def watch(pid: int | None, on_gone: Callable[[], None], *, every_s: float = EVERY_S) -> threading.Thread | None:
    """Call `on_gone` from a thread of its own once process `pid` is gone.

    Watches nothing, and returns None, without a pid or where that process cannot be seen from here (a client in another
    container).
    """
    if pid is None or pid <= 0:
        return None
    import psutil  # a hundredth of a second that the start need not wait for

    try:
        process = psutil.Process(pid)
    except psutil.Error:
        return None

    def run() -> None:
        wait = threading.Event()
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            wait.wait(every_s)
        on_gone()

    def run_safely() -> None:
        try:
            run()
        except psutil.Error:
            on_gone()

    thread = threading.Thread(target=run_safely, name="watchdog", daemon=True)
    thread.start()
    return thread
