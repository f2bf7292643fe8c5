"""Texts for one hole and what each cost: what may be shown of them, which are different, and in which order they come.

Knows the gate and the names judge; knows no model and no decoding.
"""

from __future__ import annotations

from dataclasses import dataclass

from remask.contract.messages import NameFacts, PromptCounts, Reason
from remask.engine.decode.search.value import UNKNOWN_NATS, WRONG_NATS, Aim
from remask.engine.judge.finish import Finished, finish
from remask.engine.judge.gate import Gate
from remask.engine.judge.names import NamesJudge

UNSHOWN = frozenset({Reason.CUT, Reason.SYNTAX, Reason.EMPTY, Reason.DUPLICATE, Reason.DEADLINE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One text for the hole and what it cost. `prompted` is a time of `time.monotonic`.

    `score`: its mean log-probability, or where a search found it, its value there, which has the names in it.
    """

    text: str
    reason: Reason
    detail: str
    score: float
    names: NameFacts
    tokens: int
    forwards: int
    prompt: PromptCounts
    prompted: float
    decode_ms: float
    searched: bool = False
    doubt: float = 0.0  # the mean probability that a token is wrong, by the corrector head

    @property
    def value(self) -> float:
        """What it is ranked by: the score, less for names that nothing defines, less for the corrector's doubts."""
        return self.score if self.searched else self.score - UNKNOWN_NATS * self.names.after - WRONG_NATS * self.doubt


class Finisher:
    """What may be shown of each text for one hole, remembered; without a gate all of it, trimmed."""

    def __init__(self, gate: Gate | None, names: NamesJudge | None, prefix: str, suffix: str) -> None:
        self._gate = gate
        self._names = names
        self._prefix = prefix
        self._suffix = suffix
        self._seen: dict[tuple[str, Reason], Finished] = {}

    def finish(self, draft: str, ended: Reason) -> Finished:
        """What may be shown of a draft that ended for a reason."""
        if (draft, ended) not in self._seen:
            self._seen[draft, ended] = finish(draft, ended, self._prefix, self._suffix, self._gate)
        return self._seen[draft, ended]

    def facts(self, draft: str, shown: str) -> NameFacts:
        """What the names judge says of a draft and of what is shown of it; nothing without one."""
        return NameFacts() if self._names is None else self._names.compare(draft, shown)

    def aim(self) -> Aim:
        """What a search measures texts by: they hold if the gate lets all of them through."""
        names = self._names
        return Aim(
            holds=lambda text, reason: self.finish(text, reason).reason not in UNSHOWN,
            unknown=lambda text: 0.0 if names is None else names.check(text).share,
        )


def distinct(attempts: list[Attempt]) -> list[Attempt]:
    """Those with a text, each text once, the one of most value first."""
    by_text: dict[str, Attempt] = {}
    for attempt in sorted(attempts, key=lambda a: a.value, reverse=True):
        if attempt.text:
            by_text.setdefault(attempt.text.strip(), attempt)
    return list(by_text.values())
