"""RMS norm: out = x / sqrt(mean(x^2) + eps) * weight over the last dimension (Zhang & Sennrich 2019)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from remask.kernels.precision import wide


def reference_rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The formula in float32, rounded once: [rows, columns] and [columns] -> [rows, columns] in x's dtype."""
    y = wide(x)
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps) * wide(weight)).to(x.dtype)


@triton.jit
def _rms_norm_kernel(
    x_ptr,
    x_row_stride,
    weight_ptr,
    out_ptr,
    out_row_stride,
    n_columns,
    eps,
    BLOCK_SIZE: tl.constexpr,  # a power of two that holds a row: one program a row, read once
):
    """Out = x / sqrt(mean(x^2) + eps) * weight, one row."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_SIZE)
    inside = columns < n_columns
    # float32: sums of 16-bit squares lose the small ones
    x = tl.load(x_ptr + row * x_row_stride + columns, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_columns + eps)
    tl.store(out_ptr + row * out_row_stride + columns, x * scale * weight, mask=inside)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`reference_rms_norm` in one reading of [rows, columns]."""
    assert x.ndim == 2
    assert x.stride(1) == 1
    assert weight.shape == x.shape[1:]
    assert weight.is_contiguous()
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if len(x):
        block = triton.next_power_of_2(x.shape[1])
        warps = min(max(block // 256, 1), 16)
        _rms_norm_kernel[(len(x),)](
            x, x.stride(0), weight, out, out.stride(0), x.shape[1], eps, BLOCK_SIZE=block, num_warps=warps
        )
    return out
