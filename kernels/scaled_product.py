"""A product with 8-bit weights: out = (x rows^T) * scale + bias, one scale a row of the matrix.

rows are int8 or float8 (e4m3) and become x's dtype inside the tile, which holds every one of them exactly: memory gives
half the bytes of a 16-bit matrix, and nothing but the sum is rounded. For few tokens, where reading the matrix is all
that costs time; its width may be cut among programs whose sums are added in order, so that a result never varies.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from remask.kernels.precision import wide

PROGRAMS = 264  # at least so many where the sizes allow it: two for each processor of a Hopper card
MOST_ROWS = 256  # of x; beyond that multiplying costs more than reading


def reference_scaled_product(x: Tensor, rows: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """The formula in float32, rounded once: x [T, in], rows [out, in], scale [out] -> [T, out] in x's dtype."""
    wanted = torch.float64 if x.dtype == torch.float64 else torch.float32
    out = wide(x) @ rows.to(wanted).T * scale.to(wanted)
    return (out if bias is None else out + bias.to(wanted)).to(x.dtype)


@triton.jit
def _scaled_product_kernel(
    x_ptr,
    x_row_stride,
    rows_ptr,
    rows_row_stride,
    scale_ptr,
    bias_ptr,
    out_ptr,  # [splits, T, out]; in x's dtype where there is one split, else float32
    n_tokens,
    n_out,
    width,
    width_each,  # of a split, a multiple of BLOCK_K
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WIDEN: tl.constexpr,  # multiply in float32: Triton's interpreter has no 16-bit products
):
    """BLOCK_M tokens by BLOCK_N outputs, over one part of the width."""
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tokens = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    split = tl.program_id(2)
    here, there = tokens < n_tokens, columns < n_out
    end = tl.minimum((split + 1) * width_each, width)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(split * width_each, end, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + tokens.to(tl.int64)[:, None] * x_row_stride + k[None, :],
            mask=here[:, None] & (k < end)[None, :],
            other=0.0,
        )
        w = tl.load(
            rows_ptr + columns.to(tl.int64)[None, :] * rows_row_stride + k[:, None],
            mask=there[None, :] & (k < end)[:, None],
            other=0.0,
        )
        if WIDEN:
            x = x.to(tl.float32)
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    acc = acc * tl.load(scale_ptr + columns, mask=there, other=0.0)[None, :]
    if HAS_BIAS:  # once, not in every split
        some = tl.where(split == 0, n_out, 0)
        acc += tl.load(bias_ptr + columns, mask=columns < some, other=0.0).to(tl.float32)[None, :]
    at = out_ptr + (split * n_tokens + tokens).to(tl.int64)[:, None] * n_out + columns[None, :]
    tl.store(at, acc, mask=here[:, None] & there[None, :])


def scaled_product(
    x: Tensor,
    rows: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    block_n: int = 64,
    block_k: int = 128,
    splits: int | None = None,
) -> Tensor:
    """`reference_scaled_product` in one reading of the matrix; x of 16 or 32 bits, scale [out] float32."""
    tokens, width = x.shape
    assert x.stride(1) == rows.stride(1) == 1
    assert rows.shape[1] == width
    assert scale.shape == rows.shape[:1]
    block_m = min(64, max(16, triton.next_power_of_2(max(tokens, 1))))  # larger tiles do not fit consumer cards
    grid = triton.cdiv(len(rows), block_n), triton.cdiv(tokens, block_m)
    steps = triton.cdiv(width, block_k)
    splits = triton.cdiv(PROGRAMS, max(1, grid[0] * grid[1])) if splits is None else splits
    each = triton.cdiv(steps, min(splits, max(1, steps // 4)))  # of fewer than four steps no split is worth it
    splits = max(1, triton.cdiv(steps, each))
    dtype = x.dtype if splits == 1 else torch.float32
    out = torch.empty(splits, tokens, len(rows), dtype=dtype, device=x.device)
    if tokens:
        _scaled_product_kernel[(*grid, splits)](
            x,
            x.stride(0),
            rows,
            rows.stride(0),
            scale,
            scale if bias is None else bias,
            out,
            tokens,
            len(rows),
            width,
            each * block_k,
            HAS_BIAS=bias is not None,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            WIDEN=triton.knobs.runtime.interpret,
            num_warps=4,
            num_stages=3,
        )
    return out[0] if splits == 1 else out.sum(0).to(x.dtype)
