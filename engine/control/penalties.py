"""Penalties on what a text says again: pure functions of scores, states and tokens. Knows no passes and no policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from remask.engine.models.transfer import sent


def repeated(scores: Tensor, earlier: Sequence[Iterable[int]], penalty: float) -> Tensor:
    """Scores [R, vocab] with those of tokens that stand earlier made smaller: s / penalty if s > 0, else s * penalty.

    earlier[r] are the tokens before row r's own place. Source: the repetition penalty of CTRL (Keskar et al. 2019).
    """
    changed = scores.clone()
    for row, tokens in enumerate(earlier):
        known = sent(sorted(set(tokens)), scores.device)
        own = scores[row, known]
        changed[row, known] = torch.where(own > 0, own / penalty, own * penalty)
    return changed


def degeneration(candidates: Tensor, earlier: Tensor) -> Tensor:
    """How alike each candidate's state [K, width] is to the most alike earlier one [T, width]: [K], -1 to 1.

    max_j cos(h_v, h_j). Source: the degeneration penalty of contrastive search, SimCTG (Su et al. 2022).
    """
    one, other = (torch.nn.functional.normalize(states.float(), dim=-1) for states in (candidates, earlier))
    return (one @ other.T).amax(-1)


def contrasted(probability: Tensor, alike: Tensor, alpha: float) -> Tensor:
    """The value [K] of each candidate: (1 - alpha) * p - alpha * alike; what has no probability is out of reach.

    Source: contrastive search (Su et al. 2022), equation 5.
    """
    value = (1 - alpha) * probability - alpha * alike
    return value.masked_fill(probability <= 0, -torch.inf)
