"""How much text before and after a hole an example shows, in whole lines. Knows what lines cost in tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from remask.engine.training.corpus.holes import Hole

Costs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """Bounds in tokens, all of them upper bounds of what is drawn."""

    prefix_least: int = 64
    prefix: int = 380
    suffix: int = 120
    middle: int = 120
    others: int = 120


class Lines:
    """Line starts of a text and the tokens before each line (estimated: every line tokenised by itself)."""

    def __init__(self, text: str, costs: list[int]) -> None:
        lengths = np.fromiter((len(line) + 1 for line in text.split("\n")), dtype=np.int64)
        self.starts: Costs = np.concatenate([[0], np.cumsum(lengths)])
        self.before: Costs = np.concatenate([[0], np.cumsum(np.asarray(costs, np.int64) + 1)])  # 1 for the newline

    def cost(self, start: int, end: int) -> float:
        """Estimated tokens of text[start:end]."""
        return self._position(end) - self._position(start)

    def first_within(self, end: int, bound: int) -> int:
        """The earliest line start from which text up to `end` costs at most `bound`; that of its own line at least."""
        line = int(np.searchsorted(self.before, self._position(end) - bound))
        own = int(np.searchsorted(self.starts, end, side="right")) - 1
        return int(self.starts[min(line, own)])

    def last_within(self, start: int, bound: int) -> int:
        """The latest line start up to which text from `start` costs at most `bound`; `start` where none does."""
        line = int(np.searchsorted(self.before, self._position(start) + bound, side="right")) - 1
        return max(start, int(self.starts[min(line, len(self.starts) - 1)]))

    def line_end(self, at: int) -> int:
        """The offset behind the line that holds `at`, its newline included."""
        return int(self.starts[min(int(np.searchsorted(self.starts, at, side="right")), len(self.starts) - 1)])

    def _position(self, at: int) -> float:
        line = min(int(np.searchsorted(self.starts, at, side="right")) - 1, len(self.starts) - 2)
        share = (at - self.starts[line]) / (self.starts[line + 1] - self.starts[line])
        return float(self.before[line] + share * (self.before[line + 1] - self.before[line]))


def prefix_start(lines: Lines, hole: Hole, bounds: WindowBounds, room: int, rng: np.random.Generator) -> int:
    """Where the prefix starts: the head of the file or of the function where either fits, else a random bound.

    The function's head is kept in view whenever it can be, since its signature and docstring say what to write.
    """
    most = max(16, min(bounds.prefix, room))
    earliest = lines.first_within(hole.start, most)
    if earliest == 0 and rng.random() < 0.4:
        return 0
    head = hole.scope.start if hole.scope is not None else hole.start
    if earliest <= head < hole.start and rng.random() < 0.4:
        return head
    drawn = lines.first_within(hole.start, int(rng.integers(min(bounds.prefix_least, most - 1), most)))
    return max(earliest, min(drawn, head))


def suffix_end(lines: Lines, hole: Hole, length: int, bounds: WindowBounds, rng: np.random.Generator) -> int:
    """Where the suffix ends: nowhere for an open hole, often with the function, else at a random bound."""
    if hole.open:
        return hole.end
    line = lines.line_end(hole.end)
    least = (
        line if lines.cost(hole.end, line) <= bounds.suffix else hole.end
    )  # a suffix is empty at the file's end only
    bound = int(rng.integers(4, 24 if rng.random() < 0.15 else bounds.suffix))
    # A file that ends with the function is rarer where that leaves no suffix at all.
    share = 0.4 if hole.scope is not None and hole.end < hole.scope.end else 0.1
    if hole.scope is not None and rng.random() < share and lines.cost(hole.end, hole.scope.end) <= bounds.suffix:
        return max(hole.end, hole.scope.end)
    return min(length, max(least, lines.last_within(hole.end, bound)))
