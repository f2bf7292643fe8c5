"""A draft's indentation made the file's own: tabs where the file uses them alone, spaces where it does.

Models learn from files that are indented by four spaces, and write these below tabs, too: counted from the margin,
from the cursor, or on top of the tabs. Knows texts only, no language; texts have LF as their only line end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from remask.grammars.indentation import FOUR, LEAST, indent_of, indent_unit, indents

_LOOK = 4_000  # characters on either side that show how the file is indented
_OPENS_MORE = (":", "(", "[", "{", ",", "\\", "=")
_OPENS_BLOCK = (":", "(", "[", "{")
_GOES_ON = tuple(".?:&|+-*/=<>")  # how lines begin that may stand deeper than the statement they belong to
_COMMENT = re.compile(r"\s(?:#|//).*$")


class Fitting:
    """How drafts between `prefix` and `suffix` are to be indented."""

    def __init__(self, prefix: str, suffix: str = "") -> None:
        above, _, self._own = prefix[-_LOOK:].rpartition("\n")
        found = indents(f"{above}\n{self._own}|")
        if not any(found):
            found = indents(suffix[:_LOOK])
        # One space alone is a column of a comment's star.
        spaced = any(indent.startswith(" " * LEAST) for indent in found)
        tabs = any("\t" in indent for indent in found)
        self.by_tabs = tabs and not spaced
        self._unit = indent_unit(prefix[-_LOOK:]) if spaced and not tabs else ""
        self._previous = next((row for row in reversed(above.split("\n")) if row.strip()), "")

    def fit(self, draft: str) -> str:
        """The draft with the file's indentation; its rows stay its rows. Fitting twice is fitting once."""
        first, *below = draft.split("\n")
        if self._unit:
            return "\n".join([first, *(_respaced(row, self._unit) for row in below)])
        return "\n".join(self._tabbed([first, *below])) if self.by_tabs else draft

    def end_in(self, draft: str, end: int) -> int:
        """The offset in the draft of the offset `end` in what `fit` makes of it."""
        fitted = self.fit(draft)
        row = fitted.count("\n", 0, end)
        column = end - (fitted.rfind("\n", 0, end) + 1)
        before, after = draft.split("\n")[row], fitted.split("\n")[row]
        start = sum(len(line) + 1 for line in draft.split("\n")[:row])
        return start + (max(0, column + len(before) - len(after)) if column else 0)

    def _tabbed(self, rows: list[str]) -> list[str]:
        at = next((index for index, row in enumerate(rows) if row.strip() or self._own.strip()), None)
        if at is None:
            return rows
        own = self._own if at == 0 else ""
        width = _columns([indent_of(row) for row in rows[at + 1 :] if row.strip()])
        level, given = _level(indent_of(own), width), ""
        rows = [*rows]
        if not own.strip():
            given = indent_of(rows[at])
            deeper = self._deeper(level, _level(given, width), rows[at])
            rows[at] = _at(rows[at], deeper, width, aligned=rows[at].lstrip().startswith(_GOES_ON))
            level += deeper
        below = [index for index in range(at + 1, len(rows)) if rows[index].strip()]
        trimmed = given and indent_of(rows[at]) != given
        if below and (trimmed or any(" " * LEAST in indent_of(rows[index]) for index in below)):
            shift = _shift(own + rows[at], level, rows[below[0]], given, width)
            for index in below:
                rows[index] = _at(rows[index], _level(indent_of(rows[index]), width) + shift, width)
        return rows

    def _deeper(self, own: int, given: int, row: str) -> int:
        """How many levels deeper than the cursor the draft's first line stands, of those that it wants.

        A cursor that has indentation stands where the line belongs, but for a header just above it.
        """
        if row.lstrip().startswith(_GOES_ON):
            return given
        opens = _opens(self._previous)
        floor = _level(indent_of(self._previous), len(FOUR)) + opens
        return min(given, max(0, floor - own)) if opens or not own else 0


def _shift(first: str, level: int, second: str, given: str, width: int) -> int:
    """What is added to the levels of the lines below the first, which stands at `level`."""
    found = _level(indent_of(second), width)
    if _opens(first):
        return level + 1 - found if _bare(first).endswith(_OPENS_BLOCK) else 0
    if second.lstrip().startswith(_GOES_ON):
        return 0
    return level - found if found > level or (given and indent_of(second) == given) else 0


def _opens(line: str) -> bool:
    return _bare(line).endswith(_OPENS_MORE)


def _bare(line: str) -> str:
    return _COMMENT.sub("", line).rstrip()


def _columns(below: Sequence[str]) -> int:
    """How many spaces of a draft are one level: its smallest step, else four, or two."""
    counts = [indent.count(" ") for indent in below if " " in indent or not indent]
    steps = [step for before, after in pairwise(counts) if (step := abs(after - before)) >= LEAST]
    likely = [*(step for step in [min(steps, default=0)] if step in (2, 4, 8)), 4, 2]
    return next((width for width in likely if not any(count % width for count in counts)), len(FOUR))


def _level(indent: str, width: int) -> int:
    return indent.count("\t") + indent.count(" ") // width


def _at(row: str, level: int, width: int, *, aligned: bool = True) -> str:
    """The row at a level, with the odd columns that may align it."""
    indent = indent_of(row)
    return "\t" * max(0, level) + " " * (indent.count(" ") % width if aligned else 0) + row[len(indent) :]


def _respaced(row: str, unit: str) -> str:
    indent = indent_of(row)
    return indent.replace("\t", unit) + row[len(indent) :] if row.strip() else row
