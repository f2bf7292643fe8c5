"""How much of a draft a causal pass accepts. Pure functions of its scores; knows no model and no text."""

from __future__ import annotations

import math

from torch import Tensor


def accepted(draft: list[int], own: list[int], scores: Tensor, ratio: float = 1.0) -> int:
    """How many leading draft tokens are kept: those that equal the pass's own token there, or are nearly as likely.

    own: what the pass would have written at each place; scores: [R, vocab] float32 of those places. A token is nearly
    as likely with p(token) >= ratio * max p, which at a ratio of 1 adds nothing. Sources: greedy speculative
    verification (Leviathan et al. 2023; Stern et al. 2018); the bound is typical acceptance's (Medusa, Cai et al.
    2024) with the best token's probability in place of the entropy.
    """
    near = [False] * len(draft)
    if ratio < 1.0 and draft:
        rows = scores[: len(draft)]
        of_draft = rows.gather(-1, rows.new_tensor(draft).long()[:, None])[:, 0]
        near = (of_draft >= rows.amax(-1) + math.log(ratio)).tolist()
    kept = [d == o or close for d, o, close in zip(draft, own, near, strict=False)]
    return kept.index(False) if False in kept else len(kept)


def log_probability(tokens: list[int], own: list[int], scores: Tensor, own_probability: Tensor) -> list[float]:
    """Natural logarithm of each token's probability, from that of the pass's own token in its row [R]."""
    rows = range(len(tokens))
    gap = scores[rows, tokens] - scores[rows, own[: len(tokens)]]
    values: list[float] = (own_probability[: len(tokens)].log() + gap).tolist()
    return values
