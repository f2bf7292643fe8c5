"""Infilling examples in the engine's own layout: `[other files] [suffix] suffix [prefix] prefix middle [end]`.

The parts are tokenised apart, as the engine does, whatever tokens meet at their borders. The marks of the suffix are
left out with the suffix. An end follows every whole middle; a middle cut at its bound has none, since it does not
end there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.holes import Hole, HoleDrawer, HoleKinds
from remask.engine.training.corpus.outline import Outline
from remask.engine.training.corpus.windows import Lines, WindowBounds, prefix_start, suffix_end

PADDING, AROUND, PREFIX, MIDDLE = 0, 1, 2, 3
"""Roles of tokens: none, suffix and other files with their marks, prefix with its mark, middle with its end."""

CHARACTERS_PER_TOKEN = 3.4
MARKS = 3

OtherFiles = Callable[[Document, Hole, str], str]


class Encoder(Protocol):
    """Tokenises texts, each by itself; special tokens in them are plain text."""

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The checkpoint's special tokens."""

    prefix: int
    suffix: int
    end: int
    mask: int


@dataclass(frozen=True, slots=True)
class ExampleOptions:
    """`per_tokens`: an example for so many tokens of a file. No example is longer than `longest` tokens."""

    longest: int = 512
    per_tokens: int = 300
    kinds: HoleKinds = field(default_factory=HoleKinds)
    bounds: WindowBounds = field(default_factory=WindowBounds)


@dataclass(frozen=True, slots=True)
class Example:
    """tokens int32 [n] and their roles uint8 [n]; `whole` where an end token closes the middle.

    `documented` where the hole lies in a short function with a docstring.
    """

    tokens: npt.NDArray[np.int32]
    roles: npt.NDArray[np.uint8]
    kind: str
    whole: bool
    documented: bool


@dataclass(frozen=True, slots=True)
class _Parts:
    hole: Hole
    others: str
    suffix: str
    prefix: str
    middle: str


def no_other_files(document: Document, hole: Hole, shown: str) -> str:
    """The hook for context of other files, unused."""
    return ""


def make_examples(
    document: Document,
    shape: Outline,
    encode: Encoder,
    marks: Marks,
    options: ExampleOptions,
    rng: np.random.Generator,
    other_files: OtherFiles = no_other_files,
) -> list[Example]:
    """The examples of one file; the same for the same arguments and state of `rng`."""
    text = document.text
    lines = Lines(text, [len(ids) for ids in encode(text.split("\n"))])
    total = int(lines.before[-1])
    count = max(1, int(total / options.per_tokens + rng.random()))
    drawer = HoleDrawer(shape, options.kinds, rng)
    # One place in each of `count` equal stretches, so that nearly all text is seen about once.
    places = ((np.arange(count) + rng.random(count)) * (len(text) / count)).astype(int)
    holes = [hole for place in places if (hole := drawer.draw(int(place))) is not None]
    parts = [_cut(document, hole, lines, options, rng, other_files) for hole in holes]
    ids = encode([piece for p in parts for piece in (p.others, p.suffix, p.prefix, p.middle)])
    made = (_lay_out(p, ids[4 * i : 4 * i + 4], marks, options) for i, p in enumerate(parts))
    return [example for example in made if example is not None]


def _cut(
    document: Document,
    hole: Hole,
    lines: Lines,
    options: ExampleOptions,
    rng: np.random.Generator,
    other_files: OtherFiles,
) -> _Parts:
    text, bounds = document.text, options.bounds
    end = suffix_end(lines, hole, len(text), bounds, rng)
    suffix = text[hole.end : end]
    middle = text[hole.start : hole.end]
    shown = text[max(0, hole.start - 600) : hole.end]
    others = other_files(document, hole, shown)
    taken = lines.cost(hole.end, end) + min(lines.cost(hole.start, hole.end), bounds.middle)
    room = options.longest - MARKS - int(taken + len(others) / CHARACTERS_PER_TOKEN) - 8  # 8: the costs are estimates
    return _Parts(hole, others, suffix, text[prefix_start(lines, hole, bounds, room, rng) : hole.start], middle)


def _lay_out(parts: _Parts, ids: list[list[int]], marks: Marks, options: ExampleOptions) -> Example | None:
    others, suffix, prefix, middle = ids
    whole = len(middle) <= options.bounds.middle
    middle = [*middle, marks.end] if whole else middle[: options.bounds.middle]
    around = [*others, *([marks.suffix, *suffix] if suffix else [])]
    before = [marks.prefix, *prefix]
    if len(around) + len(before) + len(middle) > options.longest:
        return None
    roles = np.repeat(np.array([AROUND, PREFIX, MIDDLE], np.uint8), np.array([len(around), len(before), len(middle)]))
    return Example(
        np.array([*around, *before, *middle], np.int32), roles, parts.hole.kind, whole, parts.hole.documented
    )
