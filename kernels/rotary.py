"""From a row of queries, keys and values to what attention reads, in one pass over it.

Queries and keys are normed (where the model norms them), turned to their positions (Su et al. 2021), and keys and
values are written to their slots of a paged cache: (a, b) -> (a cos - b sin, b cos + a sin), the halves of a head as
pairs, angle = position * frequency.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from remask.kernels.precision import wide


def reference_rotary(
    qkv: Tensor,
    positions: Tensor,
    frequency: Tensor,
    norms: tuple[Tensor, Tensor] | None,
    eps: float,
    keys: Tensor,
    values: Tensor,
    slots: Tensor,
    heads: int,
) -> Tensor:
    """Queries [T, heads, d] of qkv [T, heads + 2 * kv_heads, d]; writes keys and values [slots, kv_heads, d]."""
    kv_heads = keys.shape[1]
    q, k, v = wide(qkv).split([heads, kv_heads, kv_heads], dim=1)
    if norms is not None:
        q, k = (_normed(x, wide(norm), eps) for x, norm in zip((q, k), norms, strict=True))
    angle = positions[:, None, None] * wide(frequency)  # [T, 1, d / 2]
    q, k = (_turned(x, angle.cos(), angle.sin()) for x in (q, k))
    keys[slots] = k.to(keys.dtype)
    values[slots] = v.to(values.dtype)
    return q.to(qkv.dtype)


def _normed(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


@triton.jit
def _rotary_kernel(
    qkv_ptr,
    qkv_row_stride,
    positions_ptr,
    frequency_ptr,
    q_norm_ptr,
    k_norm_ptr,
    q_ptr,
    keys_ptr,
    values_ptr,
    slot_stride,
    head_stride,
    slots_ptr,
    half,
    eps,
    N_HEADS: tl.constexpr,
    N_KV_HEADS: tl.constexpr,
    HAS_NORM: tl.constexpr,
    BLOCK_HALF: tl.constexpr,  # a power of two that holds half a head
):
    """One head of one token."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    d = tl.arange(0, BLOCK_HALF)
    inside = d < half
    at = qkv_ptr + token * qkv_row_stride + head * 2 * half + d
    first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(at + half, mask=inside, other=0.0).to(tl.float32)
    slot = tl.load(slots_ptr + token)
    if head < N_HEADS + N_KV_HEADS:
        if HAS_NORM:
            norm_ptr = q_norm_ptr if head < N_HEADS else k_norm_ptr
            scale = 1.0 / tl.sqrt((tl.sum(first * first, 0) + tl.sum(second * second, 0)) / (2 * half) + eps)
            first = first * scale * tl.load(norm_ptr + d, mask=inside, other=0.0).to(tl.float32)
            second = second * scale * tl.load(norm_ptr + half + d, mask=inside, other=0.0).to(tl.float32)
        # float32: a 16-bit angle is wrong by whole turns at long positions
        angle = tl.load(positions_ptr + token).to(tl.float32) * tl.load(frequency_ptr + d, mask=inside, other=0.0)
        cos, sin = tl.cos(angle), tl.sin(angle)
        turned = first * cos - second * sin
        second = second * cos + first * sin
        first = turned
    if head < N_HEADS:
        out = q_ptr + (token * N_HEADS + head) * 2 * half + d
    elif head < N_HEADS + N_KV_HEADS:
        out = keys_ptr + slot * slot_stride + (head - N_HEADS) * head_stride + d
    else:
        out = values_ptr + slot * slot_stride + (head - N_HEADS - N_KV_HEADS) * head_stride + d
    tl.store(out, first, mask=inside)
    tl.store(out + half, second, mask=inside)


def rotary(
    qkv: Tensor,
    positions: Tensor,
    frequency: Tensor,
    norms: tuple[Tensor, Tensor] | None,
    eps: float,
    keys: Tensor,
    values: Tensor,
    slots: Tensor,
    heads: int,
) -> Tensor:
    """`reference_rotary`; qkv, keys and values of one dtype, slots [T] int64, frequency [d / 2] float32."""
    count, all_heads, dim = qkv.shape
    kv_heads = keys.shape[1]
    assert all_heads == heads + 2 * kv_heads
    assert qkv.stride()[1:] == (dim, 1)
    assert keys.stride() == values.stride()
    assert keys.stride(2) == 1
    assert qkv.dtype == keys.dtype == values.dtype
    q = torch.empty(count, heads, dim, dtype=qkv.dtype, device=qkv.device)
    if count:
        q_norm, k_norm = norms if norms is not None else (qkv, qkv)
        _rotary_kernel[(count, all_heads)](
            qkv,
            qkv.stride(0),
            positions,
            frequency,
            q_norm,
            k_norm,
            q,
            keys,
            values,
            keys.stride(0),
            keys.stride(1),
            slots,
            dim // 2,
            eps,
            N_HEADS=heads,
            N_KV_HEADS=kv_heads,
            HAS_NORM=norms is not None,
            BLOCK_HALF=triton.next_power_of_2(dim // 2),
            num_warps=1,
        )
    return q
