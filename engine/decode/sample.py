"""Choosing a token from scores: the best one, or a random one by Gumbel noise at a temperature."""

from __future__ import annotations

import torch
from torch import Tensor


def choose(scores: Tensor, temperature: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A token for every row of `scores` [R, vocab], and its probability without the temperature: [R] each.

    Temperature 0 takes the best. Else argmax(scores / T + g) with Gumbel noise g, which draws from
    softmax(scores / T) (Gumbel 1954; Maddison et al. 2014).
    """
    if temperature == 0:
        tokens = scores.argmax(-1)
    else:
        uniform = torch.rand(scores.shape, generator=generator, device=scores.device).clamp_min(1e-20)
        tokens = (scores / temperature - (-uniform.log()).log()).argmax(-1)
    probability = scores.softmax(-1).gather(-1, tokens[:, None])[:, 0]
    return tokens, probability
