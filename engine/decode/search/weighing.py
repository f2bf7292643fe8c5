"""Weighs the texts of a search: the likelihood, the judges' word, doubts; and which text cannot win any more.

Knows the `Aim`; reads nothing and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from remask.engine.decode.request import Request
from remask.engine.decode.search.found import Found
from remask.engine.decode.search.value import BROKEN_NATS, WRONG_NATS, Aim, for_length, lines_of


class Scales:
    """Of one request."""

    def __init__(self, request: Request) -> None:
        self._aim = request.aim or Aim()
        self._margin = request.policy.margin if request.policy.steps > 1 else 0.0  # for texts made from it later
        self._several = request.wanted > 1

    def judge(self, one: Found) -> None:
        """Hear the judges on a text that has ended, and give it its value."""
        one.judged = self._aim.judged(one.text, one.reason)
        one.broken = one.judged <= -BROKEN_NATS
        self.weigh(one)

    def weigh(self, one: Found) -> None:
        """Give a judged text its value, once more if its tokens were read again."""
        doubt = one.branch.doubter.mean if one.branch.doubter is not None else 0.0
        one.value = one.judged + for_length(one.likely, lines_of(one.text)) - WRONG_NATS * doubt

    def best(self, texts: Iterable[Found]) -> Found | None:
        """The text that others have to be better than: None where all are wanted, or none holds yet."""
        whole = [one for one in texts if one.ended and not one.broken]
        return None if self._several else max(whole, key=lambda one: one.value, default=None)

    def lacks(self, one: Found, best: Found | None) -> float:
        """Nats that a text which is not whole yet cannot make good, behind the best one; 0 or less: it may win.

        Its tokens only lose. That is exact for one line; a longer text is hoped to get as many lines as the best one.
        """
        if best is None:
            return -math.inf
        hope = for_length(one.likely, max(lines_of(one.text), lines_of(best.text)))
        return best.value - self._margin - hope
