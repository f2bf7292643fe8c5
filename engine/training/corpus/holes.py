"""Where in a file a model is made to fill something in, and how much. Knows an outline, never a token.

What a user leaves open is imitated: a line, the rest of one, a statement, a whole body, an arbitrary span, or
everything after the cursor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from remask.engine.training.corpus.outline import Function, Outline

SHORT = 1_300  # characters of a function that fits a window whole, about 380 tokens
LONG_MIDDLE = 420  # characters, about 120 tokens: longer middles are cut and end nowhere
ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class HoleKinds:
    """How often each kind of middle is drawn (relative weights), and the shares of further choices.

    `short_documented`: holes in short functions with a docstring, where a file has any. `with_newline`: of the whole
    lines, those that include their line end, so that the suffix starts with the next line. `long`: how often a body
    or statement too long for a middle is taken all the same, cut and without an end.
    """

    line: float = 25
    line_end: float = 20
    statement: float = 15
    body: float = 15
    span: float = 15
    open: float = 10
    short_documented: float = 0.15
    with_newline: float = 0.3
    long: float = 0.15

    def weights(self) -> dict[str, float]:
        """The weights of the kinds, summing to 1."""
        named = {kind: float(getattr(self, kind)) for kind in DRAWERS}
        total = sum(named.values())
        return {kind: weight / total for kind, weight in named.items()}


@dataclass(frozen=True, slots=True)
class Hole:
    """The middle `text[start:end]` of a file, and the function around it. An open hole has no suffix."""

    kind: str
    start: int
    end: int
    scope: Function | None

    @property
    def open(self) -> bool:
        """Whether the file is cut off behind the hole."""
        return self.kind == "open"

    @property
    def documented(self) -> bool:
        """Whether it lies in a short function with a docstring."""
        return self.scope is not None and is_short_documented(self.scope)


class HoleDrawer:
    """Draws holes near given places of one file."""

    def __init__(self, outline: Outline, kinds: HoleKinds, rng: np.random.Generator) -> None:
        self.outline, self.kinds, self.rng = outline, kinds, rng
        weights = kinds.weights()
        self._names, self._bounds = list(weights), np.cumsum(list(weights.values()))
        self._all = [f for f in outline.functions if f.code < f.close]
        self._short = [f for f in self._all if is_short_documented(f)]

    def draw(self, near: int) -> Hole | None:
        """A hole in a function at or before the offset `near`, or not far away; None where nothing is to be dug in."""
        kind = self._names[min(len(self._names) - 1, int(np.searchsorted(self._bounds, self.rng.random())))]
        if not self._all and kind not in ("span", "line_end"):
            kind = "line_end"
        for attempt in range(ATTEMPTS):
            # The kind stays, or the long ones would be rare; where it does not fit here, it may do so nearby.
            shifted = near + int(self.rng.normal() * 1_000 * attempt)
            near = min(max(0, shifted), max(0, len(self.outline.text) - 1))
            function = self._function(near)
            place = DRAWERS[kind](self, function, near)
            if place is not None and self.outline.text[place[0] : place[1]].strip():
                return Hole(kind, *place, function)
        return None

    def chance(self, share: float) -> bool:
        """True with the given probability."""
        return bool(self.rng.random() < share)

    def below(self, low: int, high: int) -> int:
        """A random integer in [low, high)."""
        return int(self.rng.integers(low, max(low + 1, high)))

    def fits(self, start: int, end: int) -> bool:
        """Whether a middle is short enough, or is to be taken although it is not."""
        return end - start <= LONG_MIDDLE or self.chance(self.kinds.long)

    def _function(self, near: int) -> Function | None:
        pool = self._short if self._short and self.chance(self.kinds.short_documented) else self._all
        if not pool:
            return None
        at = bisect_right(pool, near, key=lambda f: f.start) - 1
        return pool[max(0, at)]


def is_short_documented(function: Function) -> bool:
    """Whether a function has a docstring, and fits a window whole."""
    return function.documented and function.close - function.start <= SHORT


Place = tuple[int, int]


def _line_at(text: str, at: int) -> Place:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _code_line(drawer: HoleDrawer, function: Function | None, near: int) -> Place:
    """A line of a function's code, or any line near the place where there is no function."""
    text = drawer.outline.text
    at = drawer.below(function.code, function.close) if function else min(len(text) - 1, near + drawer.below(0, 600))
    return _line_at(text, at)


def _line(drawer: HoleDrawer, function: Function | None, near: int) -> Place | None:
    start, end = _code_line(drawer, function, near)
    text = drawer.outline.text
    return start, min(len(text), end + 1) if drawer.chance(drawer.kinds.with_newline) else end


def _line_end(drawer: HoleDrawer, function: Function | None, near: int) -> Place | None:
    text = drawer.outline.text
    start, end = _code_line(drawer, function, near)
    first = start + len(text[start:end]) - len(text[start:end].lstrip())
    return None if first >= end else (drawer.below(first, end), end)


def _statement(drawer: HoleDrawer, function: Function | None, near: int) -> Place | None:
    if function is None:
        return None
    around = drawer.outline.statements_around(drawer.below(function.code, function.close), function)
    if not around:
        return None
    start, end = around[drawer.below(0, len(around))]
    if drawer.chance(0.5):
        start = _to_line_start(drawer.outline.text, start)
    return (start, end) if drawer.fits(start, end) else None


def _body(drawer: HoleDrawer, function: Function | None, near: int) -> Place | None:
    if function is None:
        return None
    text = drawer.outline.text
    start = function.code if drawer.chance(0.8) else function.body
    start = _to_line_start(text, start)
    if drawer.chance(0.25) and start and text[start - 1] == "\n":
        start -= 1  # the cursor at the end of the header or docstring
    return (start, function.close) if drawer.fits(start, function.close) else None


def _span(drawer: HoleDrawer, function: Function | None, near: int) -> Place | None:
    text = drawer.outline.text
    if function is None:
        start, stop = near, len(text)
    else:
        start, stop = drawer.below(function.code, function.close), function.close
    length = int(np.exp(drawer.rng.uniform(np.log(4), np.log(340))))
    return (start, min(stop, start + length)) if start < stop else None


def _open(drawer: HoleDrawer, function: Function | None, near: int) -> Place | None:
    """From behind the docstring, or from any place in the code, to the end of the function or of a statement."""
    if function is None:
        return None
    if drawer.chance(0.5):
        start = _to_line_start(drawer.outline.text, function.code)
        return (start, function.close) if drawer.fits(start, function.close) else None
    start = drawer.below(function.code, function.close)
    if function.close - start <= LONG_MIDDLE:
        return start, function.close
    around = [s for s in drawer.outline.statements_around(start, function) if s[1] - start <= LONG_MIDDLE]
    return (start, around[0][1]) if around else None


def _to_line_start(text: str, at: int) -> int:
    """The start of the line where only blanks stand between, else the offset itself."""
    line = text.rfind("\n", 0, at) + 1
    return line if not text[line:at].strip() else at


Drawer = Callable[[HoleDrawer, Function | None, int], Place | None]
DRAWERS: dict[str, Drawer] = {
    "line": _line,
    "line_end": _line_end,
    "statement": _statement,
    "body": _body,
    "span": _span,
    "open": _open,
}
