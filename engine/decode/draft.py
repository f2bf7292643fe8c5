"""What a source of drafts is: proposals that the next causal pass verifies. Knows no source.

A drafter belongs to one request. After every pass `request.hidden` holds the states of the tokens that it read and
kept, and `request.pending` ends with the token that follows them: what a draft head starts from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from remask.engine.decode.costs import PassCosts
from remask.engine.decode.regimes.base import Tails
from remask.engine.decode.request import Request


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens that may follow `request.pending`, and what they cost beside counted passes, in one-token passes.

    `kind` tells apart what is accepted more or less often. `others`: drafts that the pass reads beside this one.
    """

    tokens: list[int]
    extra: float = 0.0
    kind: str = ""
    others: list[list[int]] = field(default_factory=list)


class Drafter:
    """Proposes what the next causal pass verifies; this one nothing: one token a pass.

    `paid`: proposing costs time, so that a plan asks for it only where it has decided to.
    """

    kind = "none"
    paid = False

    def propose(self, request: Request, size: int) -> Draft:
        """At most `size` tokens that may follow `request.pending`; none where it does not know."""
        return Draft([])

    def price(self, size: int, costs: PassCosts) -> float:
        """Milliseconds that drafting `size` tokens takes beside the verifying pass."""
        return 0.0

    def tails(self, request: Request, draft: list[int], size: int) -> Tails:
        """What the pass that verifies `draft` shall draft for its successor, `size` tokens at most; () for nothing."""
        return ()

    def seen(self, drafted: int, accepted: int) -> None:
        """How many tokens of the last draft were accepted."""
