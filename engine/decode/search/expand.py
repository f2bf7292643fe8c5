"""How a text is re-noised: its weakest spans, and how much of it is given up there.

Pure functions of scores; knows no model, no cache and no text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from remask.engine.models.passes import Best

OTHERS = 3  # tokens beside the own one that a place may be tried with
KEPT = 2 / 3  # of log p of what stood behind a span: what is written anew there may come out likelier


@dataclass(frozen=True, slots=True)
class Span:
    """From position `place` on, `width` tokens are given up; `token` (log p: `sureness`) takes the first one's place.

    `doubt` is log p of that token less log p of the own one, in nats: the higher, the weaker is what stands there.
    `hope` is a guess of log p of the text that will come of it; by that spans are ordered.
    """

    place: int
    token: int
    sureness: float
    doubt: float
    hope: float
    width: int = 1


def noise(step: int, steps: int) -> float:
    """The noise of expansion `step` of `steps`: cos(pi / 2 * step / steps), 1 at first, falling slowly, then fast.

    Source: the cosine schedule of MaskGIT (Chang et al. 2022): the early steps change much, the late ones mend.
    """
    return math.cos(math.pi / 2 * min(step, steps) / max(1, steps))


def span_width(length: int, level: float, share: float = 0.25) -> int:
    """Tokens of a text that are given up at once at a noise of `level` 0 to 1, at least one; all noise is a `share`."""
    return max(1, round(level * share * length))


@dataclass(slots=True)
class Rivals:
    """The best tokens at every place of a text, heard while it is written or read: `likely` is log p of each."""

    tokens: list[list[int]] = field(default_factory=list)
    likely: list[list[float]] = field(default_factory=list)

    def hear(self, best: Best) -> None:
        """Take note of the best tokens of the next places, OTHERS + 1 of each."""
        self.tokens += best.tokens
        self.likely += best.likely


def weak_spans(rivals: Rivals, own: Sequence[int], sureness: Sequence[float], width: int, start: int = 0) -> list[Span]:
    """Every place from `start` on with each of its best other tokens, the most hopeful first; of equals the leftmost.

    rivals: of the places from `start` on; own: all tokens that stand there, sureness: log p of each. The hope is log p
    of all up to the other token, which is certain, and KEPT times that of what stood behind: as in A* (Hart, Nilsson &
    Raphael 1968), a guess of the rest. So of two places as weak the earlier one comes first: the later one's weakness
    may come of it, and leaves less to be mended.
    """
    spans = []
    before, whole = sum(sureness[:start]), sum(sureness)
    for place, tokens, likely in zip(range(start, len(own)), rivals.tokens, rivals.likely, strict=False):
        behind = whole - before - sureness[place]
        for token, value in zip(tokens, likely, strict=True):
            if token != own[place] and value > -math.inf:
                hope = before + value + KEPT * behind
                spans.append(Span(place, token, value, value - sureness[place], hope, width))
        before += sureness[place]
    return sorted(spans, key=lambda s: (-s.hope, s.place))


def rejoined(rest: Sequence[int], own: Sequence[int], size: int) -> list[int]:
    """At most `size` tokens that follow in `rest` where the newest of the `own` ones stands first: a draft.

    rest: what stood behind a span before it was re-noised. A text that took another way often comes back to it.
    """
    if not own or own[-1] not in rest:
        return []
    at = list(rest).index(own[-1]) + 1
    return list(rest[at : at + size])
