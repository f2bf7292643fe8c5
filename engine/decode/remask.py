"""What of a canvas is taken back: a judge blames committed tokens, which are then masked again, never overwritten.

Masking works where overwriting does not: a committed error supports itself (arXiv 2604.18738, mlx-lm #1490). Knows a
judge of texts, the probabilities that passes give, and a way to decode; knows no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from remask.engine.decode.canvas import Canvas
    from remask.engine.decode.guard import Guard
    from remask.engine.judge.corrector import Corrector


MOST_EXTRA = 2  # times the canvas's length: passes that remasking may add
PER_STEP = 3  # tokens that lost confidence, or that the corrector doubts, taken back at a time
TRIES = 2  # how often a position is taken back for lost confidence


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


@dataclass(frozen=True, slots=True)
class Removal:
    """A finding of numbers: they forbid nothing, since what comes back may be sure in its new surroundings."""

    remask: tuple[int, ...]
    why: str
    judge: str
    forbid: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Falling:
    """When a committed token has lost the pass's confidence: p < doubt, or p < fall * (p when it was committed).

    It counts where the pass gives another token a probability of `surer` or more, so that it would commit that one.
    Without that (0), what people write is doubted as well: most of a true block was taken back.

    Sources: backtracking where confidence drops, Saber (Dong et al. 2025) and WINO (Hong et al. 2025). The p of a
    committed token comes from the very pass that denoises the others, which sees the token: leaving each token out
    in a row of its own (WINO's shadow block) told wrong from right tokens hardly better, an AUC of 0.73 against 0.70
    with the default model, and doubles the rows.
    """

    doubt: float
    fall: float
    surer: float = 0.0

    def lost(self, now: Tensor, then: Tensor) -> Tensor:
        """Which positions, [B] bool: `now` and `then` are their tokens' probabilities [B], 1 for no word."""
        return (now < self.doubt) | (now < self.fall * then)


@dataclass(slots=True)
class Remasker:
    """One hole's judges, and what they forbade in the canvas at hand: (position, token) pairs.

    `judge` reads the text; `falling` and the corrector head judge by probabilities, where they are set; `guard` keeps
    wrong guesses from being committed.
    """

    judge: Judge | None
    decode: Callable[[list[int]], str]
    falling: Falling | None = None
    corrector: Corrector | None = None
    guard: Guard | None = None
    forbidden: set[tuple[int, int]] = field(default_factory=set)
    taken: set[tuple[int, int]] = field(default_factory=set)
    removals: int = 0
    _tries: Counter[tuple[str, int, int]] = field(default_factory=Counter)  # by judge, written length and position

    def begin(self) -> None:
        """A new canvas."""
        self.forbidden.clear()
        self.taken.clear()
        if self.guard is not None:
            self.guard.early.clear()

    def find(self, written: Sequence[int], filled: Sequence[int], canvas: Canvas) -> Finding | None:
        """Judge the canvas with its holes filled as in `filled`; forbid what may not be guessed again.

        A token that is blamed a second time at its place is forbidden there: what stands around it did not help.
        """
        if self.judge is None:
            return None
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

    def find_fallen(self, now: Tensor, canvas: Canvas, written: int) -> Finding | None:
        """Committed tokens that have lost confidence, the worst of them; `now` [B]: what this pass thinks of each."""
        assert self.falling is not None
        lost = self.falling.lost(now, canvas.confidence) & ~canvas.open
        return self._worst("confidence", 1.0 - now, lost, canvas, written, (TRIES, PER_STEP))

    def find_doubted(self, wrong: Tensor, canvas: Canvas, written: int) -> Finding | None:
        """The first committed tokens that the corrector doubts most, each once; wrong: [n] probabilities of them."""
        assert self.corrector is not None
        padded = torch.zeros(len(canvas))
        padded[: len(wrong)] = wrong
        return self._worst("corrector", padded, padded >= self.corrector.threshold, canvas, written, (1, PER_STEP))

    def _worst(
        self, judge: str, blame: Tensor, lost: Tensor, canvas: Canvas, written: int, bounds: tuple[int, int]
    ) -> Finding | None:
        """The positions of most blame among the lost ones, within (tries a position, positions a step)."""
        tries, most = bounds
        places = [p for p in lost.nonzero()[:, 0].tolist() if self._tries[judge, written, p] < tries]
        places = sorted(sorted(places, key=lambda p: -float(blame[p]))[:most])
        if not places:
            return None
        for place in places:
            self._tries[judge, written, place] += 1
        self.removals += len(places)
        if judge == "confidence":
            each = (f"{float(canvas.confidence[p]):.2f} to {1 - float(blame[p]):.2f}" for p in places)
            return Removal(tuple(places), f"its probability fell from {', '.join(each)}", judge)
        each = (f"{float(blame[p]):.2f}" for p in places)
        return Removal(tuple(places), f"wrong with a probability of {', '.join(each)}", judge)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The text of each token where they stand; a character split over tokens belongs to the last of them."""
        return pieces(self.decode, tokens)


def pieces(decode: Callable[[list[int]], str], tokens: Sequence[int]) -> list[str]:
    """See `Remasker.pieces`."""
    texts = [decode(list(tokens[: i + 1])) for i in range(len(tokens))]
    before = ["", *texts[:-1]]
    return [text[len(b) :] for text, b in zip(texts, before, strict=True)]
