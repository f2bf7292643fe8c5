"""What a batch teaches: the causal reading of clean rows, and canvases denoised towards the truth and the teacher.

The teacher of a canvas is the same network read causally. Losses are computed in pieces whose gradients are
taken at once, so that no [rows, vocab] of the whole batch is ever held. Knows no optimiser and no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.engine.training.batches import Batch
from remask.engine.training.network import Network
from remask.engine.training.recipe import Recipe

PIECE = 256  # rows whose logits exist at a time
HIDDEN = -30_000.0  # added to the score of what may not be seen; finite in every 16-bit type


@dataclass(frozen=True, slots=True)
class Losses:
    """Weighted means over a batch, in nats: of the causal reading, its middles alone, and the canvases."""

    total: float
    causal: float
    middle: float
    canvas: float


def learn(network: Network, batch: Batch, recipe: Recipe, share: float = 1.0) -> Losses:
    """Add a batch's gradients, times `share`, to those of the network's learned weights."""
    hidden, _ = read(network, batch)
    leaf = hidden.detach().requires_grad_()
    losses = _score(network, leaf, batch, recipe, share)
    assert leaf.grad is not None
    hidden.backward(leaf.grad)
    return losses


@torch.no_grad()
def measure(network: Network, batch: Batch, recipe: Recipe) -> Losses:
    """A batch's losses; nothing is learned."""
    hidden, _ = read(network, batch)
    return _score(network, hidden, batch, recipe, None)


def read(network: Network, batch: Batch, taps: tuple[int, ...] = ()) -> tuple[Tensor, list[Tensor]]:
    """Hidden states [R * S, width] of a batch, and those behind the layers in `taps`."""
    device = network.device
    seen = torch.from_numpy(batch.visible).to(device)[:, None]
    bias = torch.zeros(seen.shape, dtype=network.dtype, device=device).masked_fill_(~seen, HIDDEN)
    tokens, positions = (torch.from_numpy(a).to(device) for a in (batch.tokens, batch.positions))
    hidden, tapped = network.hidden(tokens, positions, bias, taps)
    return hidden.flatten(0, 1), [t.flatten(0, 1) for t in tapped]


def _score(network: Network, hidden: Tensor, batch: Batch, recipe: Recipe, share: float | None) -> Losses:
    device = hidden.device
    rows, targets, weights = (torch.from_numpy(a).to(device) for a in (batch.rows, batch.targets, batch.weights))
    causal = middle = 0.0
    whole = weights.sum().clamp_min(1e-6)
    is_middle = weights == recipe.middle_weight
    for piece in _pieces(len(rows)):
        loss = F.cross_entropy(network.logits(hidden[rows[piece]]).float(), targets[piece], reduction="none")
        weighted = (loss * weights[piece]).sum() / whole
        causal += float(weighted.detach())
        middle += float((loss.detach() * is_middle[piece]).sum())
        if share is not None:
            (weighted * share).backward()
    canvas = _score_canvases(network, hidden, batch, recipe, share) if recipe.canvases else 0.0
    middle /= max(1, int(is_middle.sum()))
    return Losses(causal + recipe.canvas_weight * canvas, causal, middle, canvas)


def _score_canvases(network: Network, hidden: Tensor, batch: Batch, recipe: Recipe, share: float | None) -> float:
    device = hidden.device
    rows, targets, weights, teachers = (
        torch.from_numpy(a).to(device)
        for a in (batch.canvas_rows, batch.canvas_targets, batch.canvas_weights, batch.teacher_rows)
    )
    total, whole = 0.0, weights.sum().clamp_min(1e-6)
    for piece in _pieces(len(rows)):
        logits = network.logits(hidden[rows[piece]]).float()
        log_p = logits.log_softmax(-1)
        loss = (1 - recipe.distil) * F.nll_loss(log_p, targets[piece], reduction="none")
        if recipe.distil:
            with torch.no_grad():
                taught = network.logits(hidden[teachers[piece]]).float().log_softmax(-1)
            loss = loss + recipe.distil * F.kl_div(log_p, taught, reduction="none", log_target=True).sum(-1)
        weighted = (loss * weights[piece]).sum() / whole
        total += float(weighted.detach())
        if share is not None:
            (weighted * (share * recipe.canvas_weight)).backward()
    return total


def _pieces(count: int) -> Iterator[slice]:
    return (slice(at, at + PIECE) for at in range(0, count, PIECE))
