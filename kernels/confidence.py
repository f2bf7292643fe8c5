"""How sure a row of logits is: top-1 token, its probability, the entropy and the margin, in one reading.

probability = e^(x1 - m) / s, entropy = m + log s - (sum x e^(x - m)) / s, margin = probability of the first less that
of the second; m the maximum and s = sum e^(x - m), kept up to date from tile to tile (online softmax: Milakov &
Gimelshein 2018). Forbidden tokens count as absent. Nothing of the size [rows, vocabulary] is written.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from remask.kernels.precision import wide


class Confidence(NamedTuple):
    """One entry a row: `token` int64, the rest float32 (entropy in nats)."""

    token: Tensor
    probability: Tensor
    entropy: Tensor
    margin: Tensor


def reference_confidence(logits: Tensor, forbidden: Tensor) -> Confidence:
    """The formulas over a float32 copy of [rows, vocabulary]; `forbidden` [F] int64. Ties go to the lower token."""
    x = wide(logits).index_fill(-1, forbidden, -torch.inf)
    p = x.softmax(-1)
    best = p.topk(2, dim=-1).values
    token = x.argmax(-1)
    return Confidence(token, best[:, 0], torch.special.entr(p).sum(-1), best[:, 0] - best[:, 1])


@triton.jit
def _update(x, columns, top, second, token, total, weighted, N_VOCAB: tl.constexpr):
    """Take a tile of logits [M, N] into the running values [M] of its rows; -inf stands for what is absent.

    second: the second largest so far. total: sum e^(x - top). weighted: sum x e^(x - top).
    """
    tile_top = tl.max(x, axis=1)
    # the lowest token among equals, whatever the tiles are
    at = tl.min(tl.where(x == tile_top[:, None], columns[None, :], N_VOCAB), axis=1)
    tile_second = tl.max(tl.where(columns[None, :] == at[:, None], float("-inf"), x), axis=1)
    second = tl.maximum(tl.maximum(second, tile_second), tl.minimum(top, tile_top))
    token = tl.where(tile_top > top, at, token)
    new_top = tl.maximum(top, tile_top)
    safe = tl.where(new_top == float("-inf"), 0.0, new_top)  # -inf less -inf is not a number
    shrink = tl.exp(top - safe)
    e = tl.exp(x - safe[:, None])
    total = total * shrink + tl.sum(e, axis=1)
    weighted = weighted * shrink + tl.sum(tl.where(x == float("-inf"), 0.0, x) * e, axis=1)
    return new_top, second, token, total, weighted


@triton.jit
def _forbid(x, columns, forbidden_ptr, N_FORBIDDEN: tl.constexpr, n_vocab):
    """-inf for the forbidden columns of a tile and for those behind the vocabulary."""
    x = tl.where((columns < n_vocab)[None, :], x, float("-inf"))
    for i in range(N_FORBIDDEN):
        x = tl.where((columns == tl.load(forbidden_ptr + i))[None, :], float("-inf"), x)
    return x


@triton.jit
def _confidence_kernel(
    logits_ptr,
    logits_row_stride,
    forbidden_ptr,
    parts_ptr,  # [5, rows]
    parts_stride,
    token_ptr,
    n_vocab,
    N_FORBIDDEN: tl.constexpr,  # unrolled: a handful of marks
    N_VOCAB: tl.constexpr,  # above every token
    BLOCK_SIZE: tl.constexpr,
):
    """Running values of one row (see `_update`), tile by tile."""
    row = tl.program_id(0).to(tl.int64)
    top = tl.full([1], float("-inf"), tl.float32)
    second = tl.full([1], float("-inf"), tl.float32)
    total = tl.zeros([1], tl.float32)
    weighted = tl.zeros([1], tl.float32)
    token = tl.full([1], N_VOCAB, tl.int32)
    for start in range(0, n_vocab, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits_ptr + row * logits_row_stride + columns, mask=columns < n_vocab, other=float("-inf"))
        x = _forbid(x.to(tl.float32)[None, :], columns, forbidden_ptr, N_FORBIDDEN, n_vocab)
        top, second, token, total, weighted = _update(x, columns, top, second, token, total, weighted, N_VOCAB)
    one = tl.arange(0, 1)
    tl.store(parts_ptr + row + one, top)
    tl.store(parts_ptr + parts_stride + row + one, second)
    tl.store(parts_ptr + 2 * parts_stride + row + one, total)
    tl.store(parts_ptr + 3 * parts_stride + row + one, weighted)
    tl.store(token_ptr + row + one, token)


def confidence(logits: Tensor, forbidden: Tensor, block: int = 4096) -> Confidence:
    """`reference_confidence` of [rows, vocabulary] in any floating dtype, without a copy of it."""
    assert logits.ndim == 2
    assert logits.stride(1) == 1
    rows, vocab = logits.shape
    parts = torch.empty(4, rows, dtype=torch.float32, device=logits.device)
    token = torch.empty(rows, dtype=torch.int32, device=logits.device)
    if rows:
        _confidence_kernel[(rows,)](
            logits,
            logits.stride(0),
            forbidden,
            parts,
            parts.stride(0),
            token,
            vocab,
            N_FORBIDDEN=len(forbidden),
            N_VOCAB=triton.next_power_of_2(vocab + 1),
            BLOCK_SIZE=min(block, triton.next_power_of_2(vocab)),
            num_warps=8,
        )
    return finish(parts, token)


def finish(parts: Tensor, token: Tensor) -> Confidence:
    """From the running values (top, second, total, weighted) [4, rows] to what they say."""
    top, second, total, weighted = parts
    probability = 1 / total
    entropy = (top + total.log() - weighted / total).clamp_min(0.0)  # rounding can take it below
    return Confidence(token.long(), probability, entropy, probability - (second - top).exp() / total)
