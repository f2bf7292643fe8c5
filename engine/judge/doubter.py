"""What the corrector head thinks of a text while verifying passes write it: for ranking, at no pass of its own.

Knows states and scores of passes, one after the other; knows no passes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from remask.engine.judge.corrector import Corrector, signs_of
from remask.engine.models.transformer import Taps


class Doubter:
    """The head's word on one text. `wrong` are the probabilities that its tokens are wrong, the last one left out.

    The last token of a text is written but never read, so nothing is known of it.
    """

    def __init__(self, head: Corrector) -> None:
        self._head = head
        self._signs: Tensor | None = None  # [1, SIGNS] of the newest token, which the next pass reads
        self._taps = Taps(head.taps)
        self.wrong: list[float] = []

    @property
    def mean(self) -> float:
        """The mean probability that a token is wrong; 0 of a text that is not judged."""
        return sum(self.wrong) / len(self.wrong) if self.wrong else 0.0

    def taps(self) -> Taps:
        """What the next pass has to keep for `read`."""
        self._taps = Taps(self._head.taps)
        return self._taps

    def read(self, rows: list[int], scores: Tensor, written: list[int]) -> None:
        """Take the last pass into account: it read the newest token and accepted all of `written` but the last one.

        rows: theirs in the pass, that of the newest token first. scores [len(written), vocab]: what those rows predict.
        The last of `written` is the pass's own, which the next pass reads.
        """
        states = self._taps.stacked()[rows]
        signs = signs_of(scores, torch.tensor(written, device=scores.device))
        known = signs[:-1] if self._signs is None else torch.cat([self._signs, signs[:-1]])
        judged = states[len(states) - len(known) :]
        if len(known):
            self.wrong += self._head.wrong(judged, known).tolist()
        self._signs = signs[-1:]
