"""How much of a draft a causal pass accepts. Pure functions of its scores; knows no model and no text."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from remask.engine.models.transfer import sent, together


class Heard(NamedTuple):
    """What a pass says behind each of its rows [R], and of a draft's tokens behind the first ones; on the processor.

    own: the pass's own token; likely: log p of it. near: whether a draft's token is nearly as likely as the best one
    there, drafted: log p of it.
    """

    own: list[int]
    likely: list[float]
    near: list[bool]
    drafted: list[float]

    def log_probability(self, tokens: list[int]) -> list[float]:
        """Natural logarithm of each token's probability: the draft's as far as it was accepted, then an own one."""
        return [self.likely[row] if token == self.own[row] else self.drafted[row] for row, token in enumerate(tokens)]


def heard(
    draft: list[int],
    own: Tensor,
    probability: Tensor,
    scores: Tensor,
    ratio: float = 1.0,
    also: tuple[Tensor, ...] = (),
) -> tuple[Heard, list[Tensor]]:
    """Bring over what acceptance is decided by, and `also` other tensors, by one transfer.

    own: what the pass would have written at each place [R] int64; probability: of that [R], not 0; scores: [R, vocab]
    float32 of those places. A draft's token is nearly as likely with p(token) >= ratio * max p.
    """
    rows = scores[: len(draft)]
    of_draft = rows.gather(-1, sent(draft, rows.device)[:, None])[:, 0]
    likely = probability.log()
    gap = of_draft - rows.gather(-1, own[: len(draft), None])[:, 0]
    near = of_draft >= rows.amax(-1) + math.log(ratio) if ratio < 1.0 and draft else of_draft.isnan()
    here = together(own, likely, near, likely[: len(draft)] + gap, *also)
    return Heard(*(one.tolist() for one in here[:4])), here[4:]


def accepted(draft: list[int], said: Heard) -> int:
    """How many leading draft tokens are kept: those that equal the pass's own token there, or are nearly as likely.

    Sources: greedy speculative verification (Leviathan et al. 2023; Stern et al. 2018); the bound is typical
    acceptance's (Medusa, Cai et al. 2024) with the best token's probability in place of the entropy.
    """
    kept = [d == o or close for d, o, close in zip(draft, said.own, said.near, strict=False)]
    return kept.index(False) if False in kept else len(kept)
