"""What a text is worth: how likely the model finds it for its length, and what the judges take off.

Knows texts and judges as functions; runs no model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from remask.contract.messages import Reason

BROKEN_NATS = 100.0  # what a text loses that does not hold: more than any likelihood makes up for
WRONG_NATS = 0.25  # what a text loses if the corrector head is sure that all of it is wrong; a mean, that share of it
UNKNOWN_NATS = 0.5  # what it loses if nothing defines any of its names; a share of them, that share of it
LENGTH_POWER = 0.5  # of the lines that log p is shared out among: 0 takes the shortest body, 1 forgives a weak one


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What texts for one hole are measured by, beside the model.

    holds: whether a text that ended for a reason may be shown; unknown: the share of its names that nothing defines,
    0 to 1.
    """

    holds: Callable[[str, Reason], bool] = lambda text, reason: True
    unknown: Callable[[str], float] = lambda text: 0.0

    def judged(self, text: str, reason: Reason) -> float:
        """What the judges take off, in nats: 0 or less."""
        return -(0.0 if self.holds(text, reason) else BROKEN_NATS) - UNKNOWN_NATS * self.unknown(text)


def lines_of(text: str) -> int:
    """How many lines hold something, at least one."""
    return max(1, sum(not line.isspace() for line in text.splitlines() if line))


def for_length(likely: float, lines: int) -> float:
    """Log p of all tokens, in nats, shared out: log p / lines^LENGTH_POWER. One line's is the sum of its tokens'.

    The sum alone finds an early end likelier than any long text. Source: the length penalty of Wu et al. 2016,
    counted in lines, since within a line a text that says less is no better.
    """
    return float(likely / lines**LENGTH_POWER)
