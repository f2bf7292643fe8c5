"""Drafts of a draft head, with second choices beside them. Knows the head and the request; verifies nothing."""

from __future__ import annotations

from collections.abc import Sequence

from remask.engine.decode.costs import PassCosts
from remask.engine.decode.draft import Draft, Drafter
from remask.engine.decode.policy import Source
from remask.engine.decode.request import Request
from remask.engine.models.drafting import DraftHead


class HeadDrafter(Drafter):
    """Goes on from the newest token's state for as long as the head is sure enough.

    share: the time of a drafted token, in one-token passes. beside: sources that cost nothing, whose drafts are read
    along.
    """

    kind = Source.HEAD.value
    paid = True

    def __init__(self, head: DraftHead, share: float, beside: Sequence[Drafter] = ()) -> None:
        self._head, self._share, self._beside = head, share, beside

    def propose(self, request: Request, size: int) -> Draft:
        """See `Drafter`."""
        policy = request.policy
        if request.hidden is None or size <= 0:  # the newest token was known before this request
            return Draft([], kind=self.kind)
        size = min(size, policy.head)
        guess = self._head.guess(request.hidden[-1], request.pending[-1], size, policy.sure, policy.other)
        others = [[*guess.tokens[:place], token] for place, token, _ in guess.others]
        others += [found for source in self._beside if (found := source.propose(request, size).tokens)]
        return Draft(guess.tokens, self._share * len(guess.tokens), self.kind, others)

    def price(self, size: int, costs: PassCosts) -> float:
        """See `Drafter`."""
        return size * self._share * costs.ms(1)
