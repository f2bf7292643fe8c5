"""Confidence fused with the output projection: logits = hidden @ head.T are made tile by tile and never reach memory.

The vocabulary is cut into parts, each a program; their running values are merged as tiles are (see `confidence`). The
head may be 8-bit rows with a scale each (see `scaled_product`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from remask.kernels.confidence import Confidence, _forbid, _update, finish, reference_confidence
from remask.kernels.precision import wide

PARTS = 64  # programs a block of rows: enough to fill a card when a canvas is all there is


def reference_confidence_head(
    hidden: Tensor, head: Tensor, forbidden: Tensor, scale: Tensor | None = None
) -> Confidence:
    """[rows, width] and [vocabulary, width] times scale [vocabulary], by way of the logits in float32."""
    logits = wide(hidden) @ head.to(wide(hidden).dtype).T
    return reference_confidence(logits if scale is None else logits * scale, forbidden)


@triton.jit
def _confidence_head_kernel(
    hidden_ptr,
    hidden_row_stride,
    head_ptr,
    head_row_stride,
    scale_ptr,
    forbidden_ptr,
    values_ptr,  # [4, parts, rows]
    values_stride,
    token_ptr,  # [parts, rows]
    n_rows,
    n_vocab,
    width,
    tiles_each,
    HAS_SCALE: tl.constexpr,
    N_FORBIDDEN: tl.constexpr,
    N_VOCAB: tl.constexpr,  # above every token
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WIDEN: tl.constexpr,  # multiply in float32: Triton's interpreter has no 16-bit products
):
    """Running values of BLOCK_M rows over one part of the vocabulary."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    part = tl.program_id(1)
    here = rows < n_rows
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    second = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    weighted = tl.zeros([BLOCK_M], tl.float32)
    token = tl.full([BLOCK_M], N_VOCAB, tl.int32)
    for tile in range(tiles_each):
        columns = (part * tiles_each + tile) * BLOCK_N + tl.arange(0, BLOCK_N)
        x = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, width, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            h = tl.load(
                hidden_ptr + rows.to(tl.int64)[:, None] * hidden_row_stride + k[None, :],
                mask=here[:, None] & (k < width)[None, :],
                other=0.0,
            )
            w = tl.load(
                head_ptr + columns.to(tl.int64)[None, :] * head_row_stride + k[:, None],
                mask=(columns < n_vocab)[None, :] & (k < width)[:, None],
                other=0.0,
            )
            if WIDEN:
                h = h.to(tl.float32)
            x = tl.dot(h, w.to(h.dtype), x, input_precision="ieee")  # tf32 would change the top token
        if HAS_SCALE:
            x = x * tl.load(scale_ptr + columns, mask=columns < n_vocab, other=0.0)[None, :]
        x = _forbid(x, columns, forbidden_ptr, N_FORBIDDEN, n_vocab)
        top, second, token, total, weighted = _update(x, columns, top, second, token, total, weighted, N_VOCAB)
    at = values_ptr + part.to(tl.int64) * n_rows + rows
    tl.store(at, top, mask=here)
    tl.store(at + values_stride, second, mask=here)
    tl.store(at + 2 * values_stride, total, mask=here)
    tl.store(at + 3 * values_stride, weighted, mask=here)
    tl.store(token_ptr + part.to(tl.int64) * n_rows + rows, token, mask=here)


def confidence_head(
    hidden: Tensor,
    head: Tensor,
    forbidden: Tensor,
    scale: Tensor | None = None,
    *,
    block_n: int = 128,
    block_k: int = 64,
    parts: int = PARTS,
) -> Confidence:
    """`reference_confidence_head` for normed hidden states [rows, width], without logits in memory."""
    assert hidden.ndim == 2
    assert hidden.stride(1) == head.stride(1) == 1
    assert hidden.dtype == head.dtype if scale is None else scale.shape == head.shape[:1]
    rows, vocab = len(hidden), len(head)
    block_m = min(64, max(16, triton.next_power_of_2(max(rows, 1))))
    tiles = triton.cdiv(vocab, block_n)
    each = triton.cdiv(tiles, min(parts, tiles))
    parts = triton.cdiv(tiles, each)
    values = torch.empty(4, parts, rows, dtype=torch.float32, device=hidden.device)
    token = torch.empty(parts, rows, dtype=torch.int32, device=hidden.device)
    if rows:
        _confidence_head_kernel[(triton.cdiv(rows, block_m), parts)](
            hidden,
            hidden.stride(0),
            head,
            head.stride(0),
            hidden if scale is None else scale,
            forbidden,
            values,
            values.stride(0),
            token,
            rows,
            vocab,
            hidden.shape[1],
            each,
            HAS_SCALE=scale is not None,
            N_FORBIDDEN=len(forbidden),
            N_VOCAB=triton.next_power_of_2(vocab + 1),
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            WIDEN=triton.knobs.runtime.interpret,
            num_warps=4,
            num_stages=3,
        )
    return finish(*merge(values, token))


def merge(values: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """The running values of all parts [4, parts, rows] and their tokens [parts, rows], as of one: [4, rows], [rows]."""
    tops, seconds, totals, weights = values
    top = tops.amax(0)
    first = (tops == top).int().argmax(0)  # the lower part among equals
    shrink = (tops - top).exp()
    others = tops.scatter(0, first[None], -torch.inf).amax(0)
    second = torch.maximum(others, seconds.gather(0, first[None])[0])
    merged = torch.stack([top, second, (totals * shrink).sum(0), (weights * shrink).sum(0)])
    return merged, token.gather(0, first[None])[0]
