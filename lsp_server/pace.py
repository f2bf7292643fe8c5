"""How long to wait before an automatic request goes to the engine. Pure: the time is given, never read.

While someone types faster than the engine answers, most answers are thrown away. The wait is the pause that ends a
burst, but never more than half of what an answer costs: with a fast engine there is nothing to save.
"""

from __future__ import annotations

PAUSE_S = 1.0  # two edits further apart are no burst
BURST_FACTOR = 1.5  # of the mean time between two edits
FIRST_ENGINE_S = 0.2  # what an answer costs before one was seen
_WEIGHT = 0.2  # of the newest measurement
_EAGER = frozenset("(.[{,:= \n")


class Pace:
    """The typing speed and the engine's, as moving means."""

    def __init__(self) -> None:
        self._last_edit: float | None = None
        self._interval: float | None = None
        self._engine = FIRST_ENGINE_S

    def typed(self, now: float) -> None:
        """An edit came; `now` is a time in seconds."""
        if self._last_edit is not None and 0 <= now - self._last_edit < PAUSE_S:
            gap = now - self._last_edit
            self._interval = gap if self._interval is None else self._interval + _WEIGHT * (gap - self._interval)
        else:
            self._interval = None
        self._last_edit = now

    def answered(self, seconds: float) -> None:
        """An answer of the engine took so long."""
        self._engine += _WEIGHT * (seconds - self._engine)

    def delay(self, now: float, before: str, longest: float) -> float:
        """Seconds to wait from now; `before` ends with what stands before the cursor, `longest` bounds the wait."""
        if self._interval is None or self._last_edit is None:
            return 0.0
        wait = min(BURST_FACTOR * self._interval, self._engine / 2, longest)
        if before and before[-1] in _EAGER:
            wait /= 2
        return max(0.0, wait - (now - self._last_edit))
