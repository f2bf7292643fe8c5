"""Who uses the engine besides the process that has started it. Knows a number, no connections; any thread may ask.

A guest holds a connection open for as long as it wants the engine, and the system closes that when the guest dies in
whatever way. So the engine can go on without the process that has started it, and still be left behind by nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Guests:
    """How many there are."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """There is one more as long as this lasts."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def wait_for_none(self) -> None:
        """Return when there is none, maybe at once."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count)

    def _add(self, number: int) -> None:
        with self._changed:
            self._count += number
            self._changed.notify_all()
