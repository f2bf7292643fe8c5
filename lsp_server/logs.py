"""The log: lines on standard error, never source text, and never a wait for whoever reads it.

A client may leave the pipe full; then lines are lost, not the server.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import queue
import sys

_KEPT_LINES = 1_000


class _NoArguments(logging.Filter):
    """Strips other people's records to their fixed words: their arguments are messages and source text."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0] is not None:
            record.msg = f"{record.msg} ({record.exc_info[0].__name__})"
        record.msg = str(record.msg).replace("%s", "…").replace("%r", "…")
        record.args, record.exc_info, record.exc_text = (), None, None
        return True


class _Dropping(logging.handlers.QueueHandler):
    """A QueueHandler that drops a line when nobody reads them."""

    def enqueue(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self.queue.put_nowait(record)


def set_up(level: int = logging.INFO) -> logging.handlers.QueueListener:
    """Send the log to standard error through a thread; returns the listener that does it."""
    lines: queue.Queue[logging.LogRecord] = queue.Queue(_KEPT_LINES)
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(logging.Formatter("%(asctime)s remask: %(levelname)s: %(message)s", "%H:%M:%S"))
    listener = logging.handlers.QueueListener(lines, output)
    listener.start()
    handler = _Dropping(lines)
    logging.getLogger("remask").setLevel(level)
    logging.getLogger("remask").addHandler(handler)
    foreign = logging.getLogger()
    foreign.setLevel(logging.WARNING)
    foreign_handler = _Dropping(lines)
    foreign_handler.addFilter(_NoArguments())
    foreign.addHandler(foreign_handler)
    logging.getLogger("remask").propagate = False
    logging.raiseExceptions = False  # a broken standard error is nobody's concern
    return listener
