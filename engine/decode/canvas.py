"""The block of positions being denoised. Pure tensors: no model, no text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Canvas:
    """B positions, each masked or committed.

    tokens: [B] int64, the mask token where open. open: [B] bool. confidence: [B] float32, the probability
    a position was committed with, 0 where open. settled: leading
    positions whose KV is written already. reread: a causal pass has just read these very tokens, so that their KV lies
    in the cache, where it may be kept.
    """

    def __init__(self, size: int, mask_id: int) -> None:
        self.mask_id = mask_id
        self.settled = 0
        self.reread = False
        self.tokens = torch.full((size,), mask_id, dtype=torch.int64)
        self.open = torch.ones(size, dtype=torch.bool)
        self.confidence = torch.zeros(size)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def resolved(self) -> bool:
        """Nothing is masked any more."""
        return not bool(self.open.any())

    def commit(self, predicted: Tensor, probability: Tensor, chosen: Tensor) -> None:
        """Fix the `chosen` [B] bool positions to their `predicted` [B] tokens."""
        assert bool((chosen <= self.open).all()), "a committed position is not committed again"
        self.tokens = torch.where(chosen, predicted, self.tokens)
        self.confidence = torch.where(chosen, probability, self.confidence)
        self.open &= ~chosen
        self.reread = False

    def start(self, tokens: Sequence[int]) -> None:
        """Begin with known tokens instead of masks, as many as fit; how sure they are a pass has to say."""
        known = torch.arange(len(self)) < len(tokens)
        filled = torch.tensor([*tokens[: len(self)], *self.filled()[len(tokens) :]])
        self.commit(filled, known.float(), known & self.open)

    def remask(self, positions: Sequence[int]) -> None:
        """Take committed tokens back: their positions are masked and open again."""
        where = torch.zeros_like(self.open)
        where[list(positions)] = True
        assert not bool((where & self.open).any()), "an open position has nothing to take back"
        self.tokens = torch.where(where, self.mask_id, self.tokens)
        self.confidence = torch.where(where, 0.0, self.confidence)
        self.open |= where
        self.reread = False

    def filled(self) -> list[int]:
        """All tokens, the mask token where a position is open."""
        return list(self.tokens.tolist())

    def leading_run(self) -> list[int]:
        """The committed tokens before the first open position."""
        closed = int(self.open.to(torch.int64).argmax()) if bool(self.open.any()) else len(self)
        return self.filled()[:closed]


def first_window(open_: Tensor, size: int, start: int = 0) -> Tensor:
    """The open positions of the first stretch of `size` that has any ([B] bool); all of them where size is 0.

    Stretches are counted from the block's start, `start` positions before the canvas.

    Source: the sub-blocks of Fast-dLLM v2 (Wu et al. 2025).
    """
    if size == 0:
        return open_
    number = torch.arange(start, start + len(open_)) // size
    return open_ & (number == number[open_].min())


def resize(canvas: Canvas, expand_id: int, dropped: set[int]) -> Canvas:
    """Drop each of the `dropped` tokens and turn each expand token into two masks. Source: DreamOn (Wu et al. 2025)."""
    kept: list[tuple[int, bool, float]] = []
    mask = canvas.mask_id
    for token, open_, confidence in zip(canvas.filled(), canvas.open.tolist(), canvas.confidence.tolist(), strict=True):
        if token in dropped:
            continue
        kept += [(mask, True, 0.0)] * 2 if token == expand_id else [(token, open_, confidence)]
    resized = Canvas(len(kept), mask)
    if kept:
        resized.tokens = torch.tensor([t for t, _, _ in kept])
        resized.open = torch.tensor([o for _, o, _ in kept])
        resized.confidence = torch.tensor([c for _, _, c in kept])
    return resized
