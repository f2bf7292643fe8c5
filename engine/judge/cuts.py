"""Where a draft may be cut: the ends of its statements and lines. Knows no parser. Offsets are in code points."""

from __future__ import annotations

from collections.abc import Callable

from remask.grammars.language import Grammar
from remask.grammars.lexis import scan, scan_prefix

CLOSE_LOOK = 16
"""How many of the longest cuts are tried one after another; after that every second half is skipped."""


def cut_points(grammar: Grammar, prefix: str, draft: str, marks: str = "") -> list[int]:
    """Offsets in `draft` at which a statement or a line ends, the longest first, none of them an empty text.

    Each of `marks` ends something too, and stays.
    """
    head = prefix[scan_prefix(grammar, prefix).anchor :]
    ends = {line.end - len(head) for line in scan(grammar, head + draft).lines}
    ends.update(at for at, char in enumerate(draft) if char in "\n;")
    ends.update(at + 1 for at, char in enumerate(draft) if char in marks)
    kept = {len(draft[: max(0, end)].rstrip()) for end in ends}
    return sorted((end for end in kept if 0 < end < len(draft)), reverse=True)


def longest(points: list[int], holds: Callable[[int], bool]) -> int | None:
    """The first of `points` that holds: all of the longest are tried, then ever larger steps down are taken.

    The steps assume that what lies between a text that holds and a longer one that does not is rarely better; the
    tries are bounded by CLOSE_LOOK and twice the logarithm of the number of points.
    """
    for point in points[:CLOSE_LOOK]:
        if holds(point):
            return point
    bad, at, step = CLOSE_LOOK - 1, CLOSE_LOOK, 1
    while at < len(points):
        if holds(points[at]):
            return _back(points, bad, at, holds)
        last = len(points) - 1
        bad, at, step = at, min(at + step, last) if at < last else len(points), step * 2
    return None


def _back(points: list[int], bad: int, good: int, holds: Callable[[int], bool]) -> int:
    while good - bad > 1:
        middle = (good + bad) // 2
        if holds(points[middle]):
            good = middle
        else:
            bad = middle
    return points[good]
