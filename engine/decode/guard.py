"""What may not be guessed: a token at which the syntax breaks, and one that ends the hole too early.

A guess is not committed yet, so that it gives way to the next best one in the very pass that made it. That is done at
the first open position, where all before it is committed, and in a canvas's last pass at every position.

Sources: proposals without a viable prefix are rejected, LAVE (arXiv 2602.00612); the whole draft is looked at first,
and token by token only where it fails, EPIC (arXiv 2606.00722). Knows texts, scores and positions; knows no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from remask.contract.messages import Reason
from remask.engine.decode.remask import pieces
from remask.engine.decode.stop import StopRules

if TYPE_CHECKING:
    from remask.engine.decode.canvas import Canvas

CANDIDATES = 16  # tokens that are tried at a position, each for a parse
PLACES = 4  # positions a pass


class Redraw(Protocol):
    """Chooses in row `number` again."""

    def __call__(self, scores: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """A token and its probability, [1] each, of scores [1, vocab]."""


class Syntax(Protocol):
    """Tells where a text breaks (see `engine.judge.blame`)."""

    def breaks(self, written: str, pieces: Sequence[str]) -> int | None:
        """The position at which the text breaks; None where it holds up to the end."""


class Ends(Protocol):
    """Tells whether a text may end where it does (see `engine.judge.ending`)."""

    def objection(self, text: str, reason: Reason) -> str:
        """What speaks against it, in a few words; empty for nothing."""


@dataclass(frozen=True, slots=True)
class TooEarly:
    """A finding: the hole may not end at the first of these positions; what stands behind that goes, too."""

    remask: tuple[int, ...]
    why: str
    judge: str = "parser"
    forbid: tuple[int, ...] = ()


@dataclass(slots=True)
class Guard:
    """One hole's. `ends` judges what `rules` or a token of `end_ids` end; without it only the syntax counts.

    `early`: positions of the canvas at hand at which the hole may not end.
    """

    syntax: Syntax
    decode: Callable[[list[int]], str]
    ends: Ends | None = None
    rules: StopRules | None = None
    end_ids: frozenset[int] = frozenset()
    early: set[int] = field(default_factory=set)

    def objects(self, written: Sequence[int], canvas: Canvas, tokens: Sequence[int], *, everywhere: bool) -> bool:
        """Whether one of the guesses [R] of the open positions may have to give way (see `exchange`)."""
        places, filled = _filled(canvas, tokens)
        wrong = self._wrong(written, filled)
        return wrong is not None and wrong in (places if everywhere else places[:1])

    def exchange(
        self,
        written: Sequence[int],
        canvas: Canvas,
        scores: Tensor,
        guesses: tuple[Tensor, Tensor],
        redraw: Redraw,
        *,
        everywhere: bool,
    ) -> list[tuple[int, int]]:
        """Exchange `guesses` in place: tokens and probabilities [R] of the open positions, of scores [R, vocab].

        A guess for which no candidate is better stays. Returns the (position, token) pairs that were wrong where all
        before them is committed, so that they stay wrong.
        """
        tokens, sure = guesses
        places, filled = _filled(canvas, tokens.tolist())
        wrong: list[tuple[int, int]] = []
        rows = {place: row for row, place in enumerate(places if everywhere else places[:1])}
        for _ in range(PLACES):
            place = self._wrong(written, filled)
            if place is None or place not in rows:
                break
            row = rows.pop(place)
            better = self._better(written, filled, place, scores[row : row + 1].clone(), partial(redraw, number=row))
            if better is None:
                break
            token, probability, tried = better
            first = place == places[0]
            tokens[row] = filled[place] = token
            sure[row] = probability if first else scores[row].softmax(-1)[token]
            wrong += [(place, one) for one in tried] if first else []
        return wrong

    def _better(
        self,
        written: Sequence[int],
        filled: list[int],
        place: int,
        scores: Tensor,
        redraw: Callable[[Tensor], tuple[Tensor, Tensor]],
    ) -> tuple[int, float, list[int]] | None:
        """The next best token at a place that is not wrong there, its probability among those left, and what was."""
        tried, trial = [filled[place]], list(filled)
        for _ in range(CANDIDATES):
            scores[0, tried[-1]] = -torch.inf
            token, probability = redraw(scores)
            trial[place] = int(token[0])
            if not self._wrong_at(written, trial, place):
                return trial[place], float(probability[0]), tried
            tried.append(trial[place])
        return None

    def _wrong(self, written: Sequence[int], filled: list[int]) -> int | None:
        """The first position whose token may not stand there."""
        early = (place for place in sorted(self.early) if self._ended([*written, *filled[: place + 1]]) is not None)
        found = [place for place in (self._breaks(written, filled), next(early, None)) if place is not None]
        return min(found, default=None)

    def _breaks(self, written: Sequence[int], filled: list[int]) -> int | None:
        before = self.decode(list(written))
        if self.syntax.breaks(before, [self.decode(filled)]) is None:  # most hold, so that no piece is needed
            return None
        return self.syntax.breaks(before, pieces(self.decode, filled))

    def _wrong_at(self, written: Sequence[int], filled: list[int], place: int) -> bool:
        """Whether the text up to a position may not stand there."""
        if place in self.early and self._ended([*written, *filled[: place + 1]]) is not None:
            return True
        text, to_place = self.decode(filled), self.decode(filled[: place + 1])
        breaks = self.syntax.breaks(self.decode(list(written)), [to_place, text[len(to_place) :]])
        return breaks == 0

    def _ended(self, tokens: list[int]) -> tuple[str, Reason] | None:
        """The text that the newest of these tokens ends, and why; None where it goes on."""
        text = self.decode(tokens)
        if tokens[-1] in self.end_ids:
            return text, Reason.END
        stop = self.rules.check(text) if self.rules is not None else None
        return None if stop is None else (text[: stop.length], stop.reason)

    def too_early(self, written: Sequence[int], canvas: Canvas, place: int) -> TooEarly | None:
        """What speaks against the hole's end at a position, up to which all is committed; it is noted in `early`."""
        run = [*written, *canvas.filled()[: place + 1]]
        ended = self._ended(run)
        if self.ends is None or ended is None or place in self.early:
            return None
        if self._breaks(written, run[len(written) :]) is not None:
            return None  # to go on would not help
        why = self.ends.objection(*ended)
        if not why:
            return None
        self.early.add(place)
        behind = (place + n for n, open_ in enumerate(canvas.open[place:].tolist()) if not open_)
        return TooEarly(tuple(behind), f"it may not end here: the draft has {why}")


def _filled(canvas: Canvas, tokens: Sequence[int]) -> tuple[list[int], list[int]]:
    """The open positions, and the canvas with these tokens [R] in them."""
    places, filled = canvas.open.nonzero()[:, 0].tolist(), canvas.filled()
    for place, token in zip(places, tokens, strict=True):
        filled[place] = token
    return places, filled
