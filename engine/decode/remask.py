"""What of a canvas is taken back: a judge blames committed tokens, which are then masked again, never overwritten.

Masking works where overwriting does not: a committed error supports itself (arXiv 2604.18738, mlx-lm #1490). Knows a
judge of texts and a way to decode; knows no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from remask.engine.decode.canvas import Canvas


MOST_EXTRA = 2  # times the canvas's length: passes that remasking may add


class Finding(Protocol):
    """What a judge says: positions to mask again, positions whose guess is forbidden, and why."""

    @property
    def remask(self) -> tuple[int, ...]:
        """Committed positions."""

    @property
    def forbid(self) -> tuple[int, ...]:
        """Open positions."""

    @property
    def why(self) -> str:
        """A few words for the trace."""

    @property
    def judge(self) -> str:
        """Who says so."""


class Judge(Protocol):
    """Judges a canvas by its text, holes filled with guesses (see `engine.judge.blame`)."""

    def check(self, written: str, pieces: Sequence[str], committed: Sequence[bool]) -> Finding | None:
        """What is wrong with the canvas behind `written`; None if it holds."""


@dataclass(slots=True)
class Remasker:
    """One hole's judge, and what it forbade in the canvas at hand: (position, token) pairs."""

    judge: Judge
    decode: Callable[[list[int]], str]
    forbidden: set[tuple[int, int]] = field(default_factory=set)
    taken: set[tuple[int, int]] = field(default_factory=set)
    removals: int = 0

    def begin(self) -> None:
        """A new canvas."""
        self.forbidden.clear()
        self.taken.clear()

    def find(self, written: Sequence[int], filled: Sequence[int], canvas: Canvas) -> Finding | None:
        """Judge the canvas with its holes filled as in `filled`; forbid what may not be guessed again.

        A token that is blamed a second time at its place is forbidden there: what stands around it did not help.
        """
        committed = [not o for o in canvas.open.tolist()]
        found = self.judge.check(self.decode(list(written)), self.pieces(filled), committed)
        if found is None:
            return None
        for place in found.remask[-1:]:
            pair = place, filled[place]
            (self.forbidden if pair in self.taken else self.taken).add(pair)
        self.forbidden.update((place, filled[place]) for place in found.forbid)
        self.removals += len(found.remask)
        return found

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The text of each token where they stand; a character split over tokens belongs to the last of them."""
        texts = [self.decode(list(tokens[: i + 1])) for i in range(len(tokens))]
        before = ["", *texts[:-1]]
        return [text[len(b) :] for text, b in zip(texts, before, strict=True)]
