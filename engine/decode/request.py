"""One hole on its way through the decoder: its session, its budget, and what is written so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from remask.contract.messages import Reason
from remask.engine.decode.policy import Policy
from remask.engine.session import Session


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one request; `deadline` is a time of `time.monotonic`."""

    max_tokens: int
    deadline: float = float("inf")
    cancelled: Callable[[], bool] = lambda: False

    def spent(self, written: int) -> Reason | None:
        """Why decoding must end now, asked between passes."""
        if self.cancelled():
            return Reason.CANCELLED
        if written >= self.max_tokens:
            return Reason.BUDGET
        if time.monotonic() >= self.deadline:
            return Reason.DEADLINE
        return None


@dataclass(slots=True)
class Request:
    """A hole being filled.

    `pending` are known tokens before the canvas that the session does not hold yet, `after` those behind the
    hole where the checkpoint reads both sides. `following` is the next block's first token where the block
    before has decided it. `temperature` 0 is greedy; above it, `seed` starts the random draws. `sureness` holds the
    natural logarithm of the probability of each written token. `on_draft` is told the text as far
    as it is final. `forwards` counts every pass.
    """

    session: Session
    policy: Policy
    budget: Budget
    pending: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    following: int | None = None
    temperature: float = 0.0
    seed: int = 0
    on_draft: Callable[[str], None] | None = None
    written: list[int] = field(default_factory=list)
    sureness: list[float] = field(default_factory=list)
    forwards: int = 0

    @property
    def score(self) -> float:
        """Mean log-probability of the written tokens; 0 is certain."""
        return sum(self.sureness) / len(self.sureness) if self.sureness else 0.0

    @property
    def room(self) -> int:
        """Tokens that may still be written."""
        return self.budget.max_tokens - len(self.written)
