"""Where a completion ends, judged from its text alone: the line, the block, or what already follows the cursor.

Every rule is asked after every token, so that the end does not depend on how many tokens a pass wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from remask.contract.messages import Extent, Reason

LEAST_SUFFIX_LINE = 4  # characters; shorter lines (`)`, `}`, `pass`) are often written on purpose

BlockEnd = Callable[[str], int | None]
"""The offset in a draft where its block is closed, or None while it is open."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A draft's text up to `length` code points is the completion."""

    length: int
    reason: Reason


class StopRules:
    """The rules for one hole: `extent` is LINE or BLOCK, `block_end` closes a block."""

    def __init__(self, extent: Extent, suffix: str, block_end: BlockEnd) -> None:
        assert extent is not Extent.AUTO, "decide the extent first"
        self._extent = extent
        self._block_end = block_end
        self._following = _first_line(suffix)

    def check(self, text: str) -> Stop | None:
        """Where `text` ends, or None while it may go on."""
        stops = [self._suffix(text), self._line(text) if self._extent is Extent.LINE else self._block(text)]
        return min((s for s in stops if s is not None), key=lambda s: s.length, default=None)

    def _line(self, text: str) -> Stop | None:
        """The first line that holds something is complete."""
        start = len(text) - len(text.lstrip())
        end = text.find("\n", start)
        return None if end < 0 else Stop(end, Reason.LINE)

    def _block(self, text: str) -> Stop | None:
        end = self._block_end(text)
        return None if end is None else Stop(end, Reason.BLOCK)

    def _suffix(self, text: str) -> Stop | None:
        """A complete new line repeats the first line that follows the hole."""
        if len(self._following.strip()) < LEAST_SUFFIX_LINE:
            return None
        start = text.find("\n") + 1
        while 0 < start < len(text):
            end = text.find("\n", start)
            if end < 0:
                return None
            if text[start:end].rstrip() == self._following:
                return Stop(start - 1, Reason.SUFFIX)
            start = end + 1
        return None


def _first_line(suffix: str) -> str:
    """The first line after the cursor's own that holds something, without trailing white space."""
    _, _, rest = suffix.partition("\n")
    return next((line.rstrip() for line in rest.split("\n") if line.strip()), "")
