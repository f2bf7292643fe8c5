"""The kinds of things that a trace records, one dataclass a kind. docs/trace.md describes them.

Knows token ids and texts; records nothing itself and reads no file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened. `ms`: milliseconds since the event before; `attempt`: 0 is the first candidate."""

    kind: ClassVar[str] = ""
    attempt: int
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted(Event):
    """The prompt was read: tokens in all, found in the session, and run, in so many passes."""

    kind: ClassVar[str] = "prompt"
    total: int
    cached: int
    run: int
    passes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoised(Event):
    """One denoising pass over the canvas whose first position follows `at` written tokens.

    One entry a position: `ids` and `texts` as committed or, where still open, as predicted; `confidence` is the
    probability of each, `open` what is still masked after the pass, `committed` the positions that this pass fixed.
    """

    kind: ClassVar[str] = "denoise"
    at: int
    ids: list[int]
    texts: list[str]
    confidence: list[float]
    open: list[bool]
    committed: list[int]

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.texts) == len(self.confidence) == len(self.open):
            raise ValueError("the lists of a canvas differ in length")
        if not all(0 <= place < len(self.ids) for place in self.committed):
            raise ValueError("a position outside the canvas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remasked(Event):
    """Committed positions of the canvas that were masked again; `judge` says by what, `reason` why, in a few words."""

    kind: ClassVar[str] = "remask"
    at: int
    positions: list[int]
    ids: list[int]
    texts: list[str]
    judge: str
    reason: str

    def __post_init__(self) -> None:
        if not len(self.positions) == len(self.ids) == len(self.texts):
            raise ValueError("the lists of what was remasked differ in length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Event):
    """A causal pass took the first `accepted` of the draft and put its own token behind them.

    `ids` and `texts` are the draft's; `own` and `own_text` the pass's token. `confidence` has the probability of each
    token taken, the own one last. `source` names the draft's.
    """

    kind: ClassVar[str] = "verify"
    at: int
    source: str
    ids: list[int]
    texts: list[str]
    accepted: int
    own: int
    own_text: str
    confidence: list[float]

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.texts) or not 0 <= self.accepted <= len(self.ids):
            raise ValueError("the lists of a draft differ in length")
        if len(self.confidence) != self.accepted + 1:
            raise ValueError("a draft without the probability of what was taken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Event):
    """What a judge said of a text: what it kept of it, and why. `judge` is "parser" or "names"."""

    kind: ClassVar[str] = "verdict"
    judge: str
    draft: str
    kept: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched(Event):
    """What became of a text of a search: `what` is one of FATES, `why` says more in a few words.

    `node` counts the search's texts from 0 on; `parent` is the one that it was made from, -1 for none; both begin with
    `at` tokens. `value`: nats, higher is better, 0 where it is not known yet.
    """

    kind: ClassVar[str] = "search"
    node: int
    parent: int
    at: int
    what: str
    text: str
    value: float
    why: str

    def __post_init__(self) -> None:
        if self.what not in FATES:
            raise ValueError("an unknown fate of a text")


FATES = ("born", "valued", "merged", "pruned", "settled", "chosen", "ended")
"""A text was started, got its value, equals another, was given up, came of several; was taken, with why it ended."""


AnyEvent = Prompted | Denoised | Remasked | Verified | Judged | Searched
EVENTS: dict[str, type[AnyEvent]] = {
    one.kind: one for one in (Prompted, Denoised, Remasked, Verified, Judged, Searched)
}
