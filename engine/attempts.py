"""Texts for one hole and what each cost: which of them are different, and in which order they are offered.

Knows no model and no decoding.
"""

from __future__ import annotations

from dataclasses import dataclass

from remask.contract.messages import NameFacts, PromptCounts, Reason

WRONG_NATS = 0.25  # what a text loses in rank if the corrector head is sure that all of it is wrong
UNKNOWN_NATS = 0.5  # what a text loses in rank if nothing defines any of its names; a share of them, that share of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One text for the hole and what it cost. `prompted` is a time of `time.monotonic`."""

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
    doubt: float = 0.0  # the mean probability that a token is wrong, by the corrector head

    @property
    def value(self) -> float:
        """What it is ranked by: mean log-probability, less for names that nothing defines, less for doubts."""
        return self.score - UNKNOWN_NATS * self.names.after - WRONG_NATS * self.doubt


def distinct(attempts: list[Attempt]) -> list[Attempt]:
    """Those with a text, each text once, the one of most value first."""
    by_text: dict[str, Attempt] = {}
    for attempt in sorted(attempts, key=lambda a: a.value, reverse=True):
        if attempt.text:
            by_text.setdefault(attempt.text.strip(), attempt)
    return list(by_text.values())
