"""What a forward pass reads, and what is kept and said of it: shapes and transfers, no weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from remask.engine.models.transfer import sent, together


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass: what is read, where it stands, and who of the new tokens sees whom.

    tokens, positions: [T] int64. mask: [T, T] bool (row sees column) or None where all see all; every
    new token sees the whole valid context besides. A mask [T, S + T] also says who sees the last S valid entries:
    those of other branches behind a shared context.
    """

    tokens: Tensor
    positions: Tensor
    mask: Tensor | None

    @classmethod
    def causal(cls, tokens: list[int], start: int, device: torch.device) -> Pass:
        """Each token sees itself and those before it."""
        count = len(tokens)
        mask = causal_mask(count, device) if count > 1 else None
        return cls(sent(tokens, device), torch.arange(start, start + count, device=device), mask)

    @classmethod
    def block_causal(cls, tokens: list[int], start: int, block: int, device: torch.device) -> Pass:
        """Each token sees its own aligned block of `block` positions whole, and all blocks before it."""
        positions = torch.arange(start, start + len(tokens), device=device)
        number = positions // block
        return cls(sent(tokens, device), positions, number[:, None] >= number[None, :])

    @classmethod
    def ordered(cls, tokens: list[int], positions: list[int], device: torch.device) -> Pass:
        """Each token sees itself and those listed before it, wherever their positions are (WeDLM's reordering)."""
        causal = torch.ones(len(tokens), len(tokens), dtype=torch.bool, device=device).tril()
        return cls(sent(tokens, device), sent(positions, device), causal)

    @classmethod
    def canvas(cls, tokens: list[int], start: int, device: torch.device) -> Pass:
        """All tokens see each other."""
        count = len(tokens)
        return cls(sent(tokens, device), torch.arange(start, start + count, device=device), None)


class Confidence(NamedTuple):
    """The best token of each row, its probability, and the entropy (nats): [R] int64, [R] and [R] float32."""

    token: Tensor
    probability: Tensor
    entropy: Tensor

    @classmethod
    def of(cls, scores: Tensor) -> Confidence:
        """Of scores [R, vocab] float32; minus infinity adds nothing. Ties go to the lower token."""
        log_p = scores.log_softmax(-1)
        p = log_p.exp()
        token = scores.argmax(-1)
        entropy = -(p * log_p.clamp_min(torch.finfo(log_p.dtype).min)).sum(-1)
        return cls(token, p.gather(-1, token[:, None])[:, 0], entropy)

    def on_cpu(self) -> Confidence:
        """All three on the CPU, by one transfer."""
        return Confidence(*together(*self))


class Best(NamedTuple):
    """The best tokens of each row, the best first, and log p of each in nats: R lists of K each."""

    tokens: list[list[int]]
    likely: list[list[float]]

    @classmethod
    def of(cls, scores: Tensor, count: int) -> Best:
        """The best `count` of scores [R, vocab] float32, or as many as there are; brought over by one transfer."""
        tokens, likely = together(*cls.among(scores, count))
        return cls(tokens.tolist(), likely.tolist())

    @staticmethod
    def among(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The same where the scores are: [R, K] int64 and float32."""
        if count == 1:  # cheaper than a sorted choice
            best, tokens = scores.max(-1, keepdim=True)
        else:
            best, tokens = scores.topk(min(count, scores.shape[-1]), dim=-1)
        return tokens, best - scores.logsumexp(-1, keepdim=True)


class Taps:
    """What a pass leaves of its way: `states[k]` [T, width] are its hidden states behind the layer `layers[k]`.

    Layers count from 0 and rise.
    """

    def __init__(self, layers: Sequence[int]) -> None:
        self.layers = tuple(layers)
        self.states: list[Tensor] = []

    def stacked(self) -> Tensor:
        """All states: [T, K, width]."""
        return torch.stack(self.states, dim=1)


@lru_cache(maxsize=64)
def causal_mask(count: int, device: torch.device) -> Tensor:
    """[count, count] bool: a row sees itself and the columns before it. Shared: not to be written to."""
    return torch.ones(count, count, dtype=torch.bool, device=device).tril()
