"""Choosing a token from scores: the best one, or a random one by Gumbel noise at a temperature."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def choose(scores: Tensor, temperature: float, seeds: Sequence[int]) -> tuple[Tensor, Tensor]:
    """A token for every row of `scores` [R, vocab], and its probability without the temperature: [R] each.

    Temperature 0 takes the best. Else argmax(scores / T + g) with Gumbel noise g, which draws from
    softmax(scores / T) (Gumbel 1954; Maddison et al. 2014). Each row's noise depends on its own seed alone, so that
    a draw does not depend on how many rows are drawn together.
    """
    if temperature == 0:
        tokens = scores.argmax(-1)
    else:
        generator = torch.Generator(device=scores.device)
        noise = [
            torch.rand(scores.shape[-1:], generator=generator.manual_seed(seed), device=scores.device) for seed in seeds
        ]
        tokens = (scores / temperature - (-torch.stack(noise).clamp_min(1e-20).log()).log()).argmax(-1)
    probability = scores.softmax(-1).gather(-1, tokens[:, None])[:, 0]
    return tokens, probability


def entropy(scores: Tensor) -> Tensor:
    """Entropy of each row's distribution in nats: [R, vocab] -> [R]; forbidden tokens (-inf) add nothing."""
    log_p = scores.log_softmax(-1)
    return -(log_p.exp() * log_p.clamp_min(torch.finfo(log_p.dtype).min)).sum(-1)
