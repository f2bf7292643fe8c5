"""What a text is worth: how likely it is, how likely what follows the hole is behind it, and what the judges say.

Knows texts, tokens and judges as functions; runs no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remask.contract.messages import Reason

FOLLOWING = 8  # tokens behind the hole whose probability counts
BROKEN_NATS = 100.0  # what a text loses that does not hold: more than any likelihood makes up for
WRONG_NATS = 0.25  # what a text loses if the corrector head is sure that all of it is wrong; a mean, that share of it
UNKNOWN_NATS = 0.5  # what it loses if nothing defines any of its names; a share of them, that share of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What texts for one hole are measured by, beside the model.

    encode: of the model. holds: whether a text that ended for a reason may be shown; unknown: the share of its
    names that nothing defines, 0 to 1.
    """

    encode: Callable[[str], list[int]] = lambda text: []
    prefix: str = ""
    suffix: str = ""
    holds: Callable[[str, Reason], bool] = lambda text, reason: True
    unknown: Callable[[str], float] = lambda text: 0.0

    def following(self) -> list[int]:
        """The first tokens behind the hole; none where nothing follows it."""
        if not self.suffix.strip():
            return []
        return self.encode(self.suffix[: FOLLOWING * 16])[:FOLLOWING]

    def judged(self, text: str, reason: Reason) -> float:
        """What the judges take off, in nats: 0 or less."""
        return -(0.0 if self.holds(text, reason) else BROKEN_NATS) - UNKNOWN_NATS * self.unknown(text)


def per_token(sureness: Sequence[float], length: int) -> float:
    """Nats of a text behind which nothing stands: log p a token, times `length` to keep the unit of a whole text.

    Where something follows the hole, all are summed: a text that is too short is likely, what follows is not behind it.
    """
    return sum(sureness) / max(1, len(sureness)) * max(1, length)


def between(tokens: Sequence[int], text: str, decode: Callable[[list[int]], str]) -> tuple[int, str]:
    """How many of the first tokens lie wholly inside `text`, and what of the text stands behind them.

    A hole may end in the middle of a token, which is written whole.
    """
    for count in range(len(tokens), 0, -1):
        start = decode(list(tokens[:count]))
        if text.startswith(start):
            return count, text[len(start) :]
    return 0, text


def line_end(prefix: str, text: str, suffix: str) -> str:
    """The line feed that a text lacks which stands on lines of its own: one is put there before it is shown, too."""
    own_line = (not prefix or prefix.endswith("\n")) and bool(suffix.partition("\n")[0].strip())
    return "\n" if own_line and text.strip() and not text.endswith("\n") else ""
