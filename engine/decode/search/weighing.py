"""Weighs the texts of a search: the judges' word, the likelihood, what follows the hole, read behind each, and doubts.

Knows the `Aim` and a way to read; decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from remask.engine.decode.request import Request
from remask.engine.decode.search.branches import Branches, Row
from remask.engine.decode.search.found import Found
from remask.engine.decode.search.value import BROKEN_NATS, WRONG_NATS, Aim, between, line_end, per_token


class Scales:
    """Of one request. `sparing`: what follows is read only behind texts that it can decide between."""

    def __init__(self, request: Request, decode: Callable[[list[int]], str]) -> None:
        self._request = request
        self._decode = decode
        self._aim = request.aim or Aim()
        self._after = self._aim.following()
        self._margin = request.policy.margin
        self._least = 0.0  # nats of what follows, behind the text where it is least likely
        self.sparing = request.wanted < 2 and request.policy.steps == 1

    def judge(self, one: Found) -> None:
        """Hear the judges on a text that has ended."""
        one.judged = self._aim.judged(one.text, one.reason)
        one.broken = one.judged <= -BROKEN_NATS

    def floor(self, texts: Iterable[Found]) -> float:
        """The likelihood below which a text cannot win: a margin below the best whole text that holds, in nats.

        None can be left out where several are wanted, or where a long text is as good as a short one.
        """
        if self._request.wanted > 1 or not self._after:
            return -math.inf
        whole = [one.likely for one in texts if one.ended and not one.broken]
        return max(whole, default=-math.inf) - self._margin

    def weigh(self, branches: Branches, texts: Sequence[Found]) -> None:
        """Give every text its value. What follows counts, where it is not read, as where it is least likely."""
        asked = list({one.text: one for one in texts}.values())
        if self.sparing:
            floor = self.floor(texts)
            asked = [one for one in asked if not one.broken and one.likely >= floor]
            asked = [] if len(asked) == 1 else asked
        nats: dict[str, float] = {}
        if self._after and asked:
            for one, each in zip(asked, branches.log_probabilities([self._row(one) for one in asked]), strict=True):
                nats[one.text] = sum(each)
            self._least = min([self._least, *nats.values()])
        for one in texts:
            length = len(self._request.written)
            likely = one.likely if self._after else per_token(one.branch.sureness, length)
            doubt = one.branch.doubter.mean if one.branch.doubter is not None else 0.0
            one.value = one.judged + likely + nats.get(one.text, self._least) - WRONG_NATS * doubt

    def _row(self, one: Found) -> Row:
        """What follows the hole, behind a text as it is put there."""
        count, left = between(one.branch.written, one.text, self._decode)
        left += line_end(self._aim.prefix, one.text, self._aim.suffix)
        known = [*one.branch.tokens[: count + 1], *(self._aim.encode(left) if left else [])]
        slots = one.branch.slots[: min(count + 1, len(known) - 1)]
        return Row(known, slots, self._after)
