"""One hole on its way through the decoder: its session, its budget, and what is written so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torch import Tensor

from remask.contract.messages import Reason
from remask.engine.decode.contrast import Contrast
from remask.engine.decode.policy import Policy
from remask.engine.decode.remask import Remasker
from remask.engine.decode.search.aside import Shelf
from remask.engine.decode.search.expand import Rivals
from remask.engine.decode.search.value import Aim
from remask.engine.decode.trace import Trace
from remask.engine.judge.doubter import Doubter
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
    before has decided it. `guess` is what the hole may well hold (its text before an edit): a draft, no more.
    `temperature` 0 is greedy; above it, `seed` starts the random draws. `sureness` holds the
    natural logarithm of the probability of each written token. `on_draft` is told the text as far
    as it is final; `trace` records every pass, where that is wanted; `remasker` judges unverified canvases, and
    `doubter` hears the corrector head on what verifying passes write; `contrast` is their contrastive search's memory.
    `shelf` takes what a search has no memory for, where that is kept at all.
    `forwards` counts every pass; `extra` is what else drafting cost, as a share of a one-token pass. A search measures
    texts by `aim`; `wanted` is how many are asked for, and `rivals` hears which other tokens were likely.

    What the last pass leaves for the next draft: `hidden` [n, width] are the states of the n tokens before the newest
    one that it read and kept, in order, the last one that which predicted the newest; one of the prompt's before the
    first pass, None where the prompt was known; `ahead` are its guesses behind `pending`, where it drafted.
    """

    session: Session
    policy: Policy
    budget: Budget
    pending: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    following: int | None = None
    guess: list[int] = field(default_factory=list)
    temperature: float = 0.0
    seed: int = 0
    on_draft: Callable[[str], None] | None = None
    trace: Trace | None = None
    remasker: Remasker | None = None
    doubter: Doubter | None = None
    aim: Aim | None = None
    wanted: int = 1
    rivals: Rivals | None = None
    shelf: Shelf | None = None
    written: list[int] = field(default_factory=list)
    sureness: list[float] = field(default_factory=list)
    forwards: int = 0
    extra: float = 0.0
    hidden: Tensor | None = None
    contrast: Contrast | None = None
    ahead: list[int] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Mean log-probability of the written tokens; 0 is certain."""
        return sum(self.sureness) / len(self.sureness) if self.sureness else 0.0

    @property
    def room(self) -> int:
        """Tokens that may still be written."""
        return self.budget.max_tokens - len(self.written)

    def seeds(self, places: Iterable[int], draw: int = 0) -> list[int]:
        """A seed for the random draw at each place of the text, none shared; `draw` tells draws at one place apart."""
        return [((self.seed * 1_000_003 + place) * 65_537 + draw) % 2**63 for place in places]
