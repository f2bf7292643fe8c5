"""Which draft pays: the source and size with the most accepted tokens for the time, from measured costs and rates.

Decides on speed alone: under exact verification the text is the same whatever is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import inf

from remask.engine.decode.costs import PassCosts
from remask.engine.decode.draft import Draft, Drafter
from remask.engine.decode.drafters import AheadDrafter
from remask.engine.decode.rates import Rates
from remask.engine.decode.regimes.base import Tails
from remask.engine.decode.request import Request

MEMORY = 0.98  # a round; what the pace is averaged over


@dataclass(frozen=True, slots=True)
class Option:
    """A source that could draft up to `length` tokens, `prices` milliseconds for 0 .. length of them."""

    kind: str
    length: int
    prices: Sequence[float]


@dataclass(frozen=True, slots=True)
class Plan:
    """Draft `length` tokens by option number `option`, and read `tails` along; `ms` is what that takes."""

    option: int
    length: int
    tails: Tails
    ms: float
    worth: float = field(compare=False, default=0.0)


class Planner:
    """Costs, acceptance rates and the pace, kept for all requests of one model.

    Maximising E[tokens] / E[ms] over many rounds is maximising E[tokens] - pace * E[ms] in each, where pace is
    the best ratio reached: it starts at one token a one-token pass and follows what the rounds bring (Dinkelbach 1967).
    A draft of k tokens brings 1 + p1 + p1 p2 + ... tokens. A tail behind place j brings, one round later, what its
    own draft would, times the chance that acceptance ends at j, times the chance that it is wanted then.
    """

    def __init__(self, costs: PassCosts) -> None:
        self.costs = costs
        self.rates = Rates()
        self._tokens = 10.0
        self._ms = 10.0 * costs.ms(1)
        self._wanted = 0.7  # how often what was drafted ahead is taken

    def replace_costs(self, costs: PassCosts) -> None:
        """Go on with other figures, a measurement in place of a guess; the pace keeps its meaning."""
        self._ms *= costs.ms(1) / self.costs.ms(1)
        self.costs = costs

    @property
    def pace(self) -> float:
        """Tokens a millisecond."""
        return self._tokens / self._ms

    def best(self, options: Sequence[Option], size: int, ahead: int) -> Plan:
        """The plan of most worth where `size` tokens may be drafted, and tails may have up to `ahead` masks."""
        survival = self.rates.survival(AheadDrafter.kind, ahead)
        gains = [self._wanted * (total - 1.0) for total in accumulate(survival)]  # tokens that m masks will bring
        row = self.pace * self.costs.per_row()  # what a row costs, in tokens
        plans = []
        for number, option in enumerate(options):
            survival = self.rates.survival(option.kind, min(option.length, size))
            for length in range(1 if number else 0, len(survival)):
                plans.append(self._plan(number, option, survival[: length + 1], gains, row, size))
        best = max(plans, key=_worth)
        # Few processors are on a line: many rows may be nearly free where few are not, or none be worth it.
        option = options[best.option]
        survival = self.rates.survival(option.kind, best.length)
        others = [self._plan(best.option, option, survival, gains, price, size) for price in (row / 8, inf)]
        return max(best, *others, key=_worth)

    def _plan(
        self, number: int, option: Option, survival: list[float], gains: list[float], row: float, size: int
    ) -> Plan:
        length = len(survival) - 1
        ends = [*(p - q for p, q in pairwise(survival)), survival[length]]  # p(acceptance ends at place j)
        tails, later = _tails(ends, gains, row, size)
        ms = option.prices[length] + self.costs.ms(1 + length + sum(m + 1 for m in tails if m))
        return Plan(number, length, tails, ms, worth=sum(survival) + later - self.pace * ms)

    def seen(self, kind: str, drafted: int, accepted: int, ms: float) -> None:
        """A round's outcome: `accepted` of `drafted` tokens, and what it was expected to take."""
        self.rates.seen(kind, drafted, accepted)
        self._tokens = MEMORY * self._tokens + accepted + 1
        self._ms = MEMORY * self._ms + ms

    def used(self, taken: bool) -> None:
        """Whether a draft that a pass had made ahead was the one taken."""
        self._wanted = MEMORY * self._wanted + (1 - MEMORY) * taken


class PlannedDrafter(Drafter):
    """Drafts by the plan of most worth among several sources."""

    def __init__(self, drafters: list[Drafter], planner: Planner) -> None:
        self._drafters = drafters
        self._planner = planner
        self._ahead = any(isinstance(d, AheadDrafter) for d in drafters)
        self._plan = Plan(0, 0, (), 0.0)
        self._kind = ""

    def propose(self, request: Request, size: int) -> Draft:
        """See `Drafter`."""
        planner, policy = self._planner, request.policy
        free = {n: d.propose(request, size) for n, d in enumerate(self._drafters, 1) if not d.paid}
        options = [Option("none", 0, [0.0])]
        for number, drafter in enumerate(self._drafters, 1):
            if number in free:
                count = len(free[number].tokens)
                options.append(Option(free[number].kind, count, [0.0] * (count + 1)))
            else:
                prices = [drafter.price(n, planner.costs) for n in range(min(size, policy.canvas) + 1)]
                options.append(Option(drafter.kind, len(prices) - 1, prices))
        self._plan = plan = planner.best(options, size, policy.canvas - 1 if self._ahead else 0)
        self._kind = options[plan.option].kind
        if request.ahead:
            planner.used(self._kind == AheadDrafter.kind)
        if plan.option == 0:
            return Draft([])
        draft = free.get(plan.option) or self._drafters[plan.option - 1].propose(request, plan.length)
        return replace(draft, tokens=draft.tokens[: plan.length], kind=self._kind)

    def tails(self, request: Request, draft: list[int], size: int) -> Tails:
        """See `Drafter`."""
        return self._plan.tails[: len(draft) + 1]

    def seen(self, drafted: int, accepted: int) -> None:
        """See `Drafter`."""
        self._planner.seen(self._kind, drafted, accepted, self._plan.ms)


def _worth(plan: Plan) -> float:
    return plan.worth


def _tails(ends: list[float], gains: list[float], row: float, size: int) -> tuple[tuple[int, ...], float]:
    """For each place the masks that bring more than the rows they take, and the tokens that all of them bring.

    ends: the chance of each place; gains: the tokens that 0 .. n masks bring if it comes true; row: in tokens.
    """
    tails, later = [], 0.0
    most = max((gain / (m + 1) for m, gain in enumerate(gains)), default=0.0)  # tokens for a row
    for place, chance in enumerate(ends):
        masks, best = 0, 0.0
        longest = min(len(gains), size - place) if chance * most > row else 0
        for m in range(1, longest):
            worth = chance * gains[m] - row * (m + 1)
            if worth > best:
                masks, best = m, worth
        tails.append(masks)
        later += chance * gains[masks]
    return tuple(tails), later
