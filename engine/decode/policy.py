"""How a hole is decoded: one dial from one token a pass to fully parallel, as named sets of numbers.

On a command line a policy is `name`, or `name:field=value,field=value`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remask.contract.errors import InputError

MAX_CANVAS = 256
MAX_BRANCHES = 16

BOUNDS = {
    "canvas": (0, MAX_CANVAS, " tokens"),
    "threshold": (0, 1, ""),
    "passes": (0, MAX_CANVAS, ""),
    "lookup": (1, MAX_CANVAS, " tokens"),
    "head": (1, MAX_CANVAS, " tokens"),
    "sure": (0, 1, ""),
    "other": (0, 1, ""),
    "ratio": (0.001, 1, ""),
    "bound": (0, 100, " nats"),
    "low": (0, 1, ""),
    "penalty": (0, 1, ""),
    "window": (0, MAX_CANVAS, " tokens"),
    "temperature": (0, 10, ""),
    "branches": (1, MAX_BRANCHES, ""),
    "steps": (1, 16, ""),
    "explore": (0, 100, " nats"),
    "margin": (0, 1000, " nats"),
    "enough": (0, 100, " nats"),
    "settle": (0, 1, ""),
    "stable": (0, MAX_CANVAS, ""),
    "calm": (0, 100, " nats"),
    "repetition": (1, 10, ""),
    "contrast": (0, 1, ""),
    "contrasted": (2, 16, " tokens"),
    "doubt": (0, 1, ""),
    "surer": (0, 1, ""),
    "fall": (0, 1, ""),
}
"""The least and greatest value of a policy's numbers, and their unit."""


class Verify(StrEnum):
    """What the causal pass does with a draft."""

    OFF = "off"  # it only writes KV; the canvas has the last word
    BOUNDED = "bounded"  # it keeps what is nearly as likely as its own best token, too
    EXACT = "exact"  # it keeps what it would have written itself, so the output is greedy decoding's


class Source(StrEnum):
    """Where the draft that a causal pass verifies comes from."""

    NONE = "none"  # nothing is drafted: one token a pass
    CANVAS = "canvas"  # passes of their own over a canvas of masks
    AHEAD = "single_pass"  # the pass that verifies one draft drafts the next one, too
    LOOKUP = "lookup"  # what followed the newest tokens where they stood before
    HEAD = "head"  # a draft head goes on from the newest token's state
    SEEDED = "seeded"  # a canvas that starts with what is looked up instead of masks


class Plan(StrEnum):
    """Who chooses among the sources of a draft, and its size."""

    FIXED = "fixed"  # the policy: the first source that has one, in its size
    MEASURED = "measured"  # what brings most for its time, up to the policy's sizes


class Remask(StrEnum):
    """What takes committed tokens of an unverified canvas back; see `remask`."""

    OFF = "off"
    PARSER = "parser"  # a syntax error in the draft
    CONFIDENCE = "confidence"  # a later pass thinks far less of a token than the one that committed it
    NAMES = "names"  # names that nothing defines, once each
    CORRECTOR = "corrector"  # the corrector head, where the model has one, once a position
    ALL = "all"  # but confidence, which loses more than it mends


class Commit(StrEnum):
    """Which masked positions a pass commits; see `commit`."""

    THRESHOLD = "threshold"
    ENTROPY = "entropy"
    CREDIT = "credit"
    HIERARCHICAL = "hierarchical"
    LEFT = "left"
    SCHEDULE = "schedule"


class Schedule(StrEnum):
    """How the masked share of a canvas falls with the passes; see `commit.masked_share`."""

    LINEAR = "linear"
    COSINE = "cosine"
    SQUARE = "square"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A decoding policy. Raises InputError for values outside their bounds.

    canvas: positions a canvas has, 0 for no draft at all. passes: denoising passes a canvas gets at most, 0 for about
    the square root of its length. verify, draft: what the causal pass does with a draft, and the sources of one, joined
    with "+"; the first that has one is taken, or with a measured plan the one that pays. lookup: tokens that are looked
    up at most. head: tokens that a draft head drafts at most; it ends where the chance that all are right falls below
    `sure`, and second choices are read along whose chance is `other` or more. ratio: with bounded verification, the
    share of the best token's probability that is enough for a drafted one.

    commit: the rule of a denoising pass, with its numbers: threshold (a probability that is enough; all rules but
    entropy and schedule), bound (nats; entropy), low (probability; hierarchical), penalty and window (left), schedule.
    temperature: of drawing in an unverified canvas, where the request draws at all; it falls with the passes. stable: a
    canvas that did not change for so many passes is done, if its mean entropy is below calm (nats); 0 turns this off.

    branches: texts of a search's first step, 1 for no search; each of the other `steps` adds one less. explore: how
    much a text that was expanded less often is preferred. margin: a text so many nats below the best one is given up.
    enough: a first text that lacks no more than that is not searched for others. settle: 1 lets the texts settle their
    disputes; see `search`.

    repetition: what the scores of tokens that the hole has already are divided by (times, below 0); 1 is off. contrast:
    the weight alpha of the degeneration penalty among the `contrasted` likeliest tokens of a greedy text; 0 is off.

    remask: what takes committed tokens of an unverified canvas back, joined with "+", or all or off. With confidence: a
    probability below `doubt`, or below `fall` times that which the token was committed with, where another one has
    `surer` or more.
    """

    name: str
    canvas: int = 0
    threshold: float = 0.0
    passes: int = 1
    verify: Verify = Verify.EXACT
    draft: str = Source.CANVAS.value
    plan: Plan = Plan.FIXED
    lookup: int = 8
    head: int = 6
    sure: float = 0.25
    other: float = 0.06
    ratio: float = 0.5
    commit: Commit = Commit.THRESHOLD
    bound: float = 0.1
    low: float = 0.4
    penalty: float = 0.02
    window: int = 0
    schedule: Schedule = Schedule.COSINE
    temperature: float = 0.9
    stable: int = 0
    calm: float = 0.005
    branches: int = 1
    steps: int = 1
    explore: float = 1.0
    margin: float = 2.0
    enough: float = 0.0
    settle: int = 1
    repetition: float = 1.0
    contrast: float = 0.0
    contrasted: int = 4
    remask: str = Remask.PARSER.value
    doubt: float = 0.05
    surer: float = 0.97
    fall: float = 0.1

    def __post_init__(self) -> None:
        for name, (least, most, unit) in BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(f"The policy's {name} is {least:g} to {most:g}{unit}, not {value:g}.")
        if unknown := set(self.draft.split("+")) - set(Source):
            raise InputError(f"The policy's draft is {', '.join(Source)}, or several with a +, not {min(unknown)!r}.")
        judges = self.remask.split("+")
        if set(judges) - set(Remask) or (len(judges) > 1 and {Remask.OFF, Remask.ALL} & set(judges)):
            each = ", ".join(j for j in Remask if j not in (Remask.OFF, Remask.ALL))
            raise InputError(f"The policy's remask is off, all, or {each} joined with a +, not {self.remask!r}.")
        if self.canvas == 0 and not self.verifies:
            raise InputError("A policy without a canvas writes by the causal pass, so its verify is 'exact'.")
        if self.branches > 1 and not self.verifies:
            raise InputError("A policy with branches searches over verified texts, so its verify is 'exact'.")
        if self.branches > 1 and self.penalised:
            raise InputError("A search compares plain scores: leave out the branches, or repetition and contrast.")
        if self.contrast and self.verify is not Verify.EXACT:
            raise InputError("The contrastive penalty decides token after token, so the policy's verify is 'exact'.")
        if self.canvas < 2 and Source.AHEAD in self.sources:
            raise InputError(f"The policy's canvas is 2 or more to draft in a single pass, not {self.canvas}.")

    @property
    def verifies(self) -> bool:
        """A causal pass decides what is kept of a draft."""
        return self.verify is not Verify.OFF

    @property
    def exact(self) -> bool:
        """The text is what one token a pass writes; where it is not, it may part from that as it likes."""
        return self.verify is Verify.EXACT and self.branches == 1 and not self.penalised

    @property
    def penalised(self) -> bool:
        """Scores are changed by what is written already."""
        return self.repetition != 1.0 or self.contrast != 0.0

    @property
    def planned(self) -> bool:
        """Sources and sizes are chosen by what they cost and bring."""
        return self.plan is Plan.MEASURED

    @property
    def acceptance(self) -> float:
        """The share of the best token's probability from which a drafted token is kept; 1 is exact."""
        return self.ratio if self.verify is Verify.BOUNDED else 1.0

    @property
    def judges(self) -> frozenset[Remask]:
        """Who may take committed tokens back."""
        wanted = frozenset(Remask(name) for name in self.remask.split("+"))
        every = frozenset(Remask) - {Remask.CONFIDENCE}
        return (every if Remask.ALL in wanted else wanted) - {Remask.OFF, Remask.ALL}

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where drafts come from, the preferred first."""
        return tuple(Source(name) for name in self.draft.split("+"))
