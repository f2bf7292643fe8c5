"""What the corrector head thinks of a text while verifying passes write it: for ranking, at no pass of its own.

Knows states and scores of passes, one after the other; knows no passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from remask.engine.judge.corrector import Corrector, signs_of
from remask.engine.models.passes import Taps
from remask.engine.models.transfer import picked_rows, sent


class Doubter:
    """The head's word on one text. `wrong` are the probabilities that its tokens are wrong, in order.

    The last token of a text is written but never read, so that it has none; one that is not known is no number. Forks
    hear the same passes. What they say is brought over from a card when it is asked for.
    """

    def __init__(self, head: Corrector) -> None:
        self._head = head
        self._signs: Tensor | None = None  # [1, SIGNS] of the newest token, which the next pass reads
        self._last = [Taps(head.taps)]  # of the newest pass
        self._wrong: list[float] = []
        self._heard: list[Tensor] = []  # what follows, where the passes are

    @property
    def wrong(self) -> list[float]:
        """The probabilities, in order."""
        if self._heard:
            self._wrong += torch.cat(self._heard).tolist()
            self._heard.clear()
        return self._wrong

    @wrong.setter
    def wrong(self, wrong: list[float]) -> None:
        self._wrong = wrong

    @property
    def mean(self) -> float:
        """The mean probability that a token is wrong; 0 of a text that is not judged."""
        known = [one for one in self.wrong if not math.isnan(one)]
        return sum(known) / len(known) if known else 0.0

    def fork(self, count: int, more: int = 0) -> Doubter:
        """For a text of which `count` first tokens are this one's, and `more` behind them are not judged."""
        other = Doubter(self._head)
        other._last = self._last
        kept = self.wrong[:count]
        other.wrong = [*kept, *[math.nan] * (count - len(kept) + more)]
        return other

    def taps(self) -> Taps:
        """What the next pass has to keep for `read`."""
        self._last[0] = Taps(self._head.taps)
        return self._last[0]

    def read(self, rows: Sequence[int], scores: Tensor, written: Sequence[int]) -> None:
        """Take the last pass into account: it read the newest token and accepted all of `written` but the last one.

        rows: theirs in the pass, that of the newest token first. scores [len(written), vocab]: what those rows predict.
        The last of `written` is the pass's own, which the next pass reads.
        """
        states = picked_rows(self._last[0].stacked(), rows)
        signs = signs_of(scores, sent(written, scores.device))
        known = signs[:-1] if self._signs is None else torch.cat([self._signs, signs[:-1]])
        judged = states[len(states) - len(known) :]
        if len(known):
            self._heard.append(self._head.wrong(judged, known))
        self._signs = signs[-1:]
