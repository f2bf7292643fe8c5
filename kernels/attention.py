"""Canvas attention: several canvases, each against its own paged context and its own new tokens.

out = softmax(q k^T / sqrt(d)) v, k over the pages of the sequence's context (all visible, but what a mask hides of its
end) and over its new tokens as `mode` says. Branches on one prefix name the same pages, or lie behind it in one cache
with a mask between them: nothing is copied. Query heads that share a KV head are rows of one tile (grouped queries:
Ainslie et al. 2023); the softmax is kept online (FlashAttention: Dao et al. 2022).
"""

from __future__ import annotations

from enum import IntEnum

import torch
import triton
import triton.language as tl
from torch import Tensor

from remask.kernels.precision import wide


class Mode(IntEnum):
    """Who of a sequence's new tokens sees whom."""

    BIDIRECTIONAL = 0  # all see all
    CAUSAL = 1  # each sees itself and those listed before it
    BLOCK_CAUSAL = 2  # each sees its own aligned block of positions and those before it
    MASKED = 3  # as a mask says


def reference_canvas_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    table: Tensor,
    contexts: Tensor,
    starts: Tensor,
    mode: Mode,
    block: int = 1,
    mask: Tensor | None = None,
) -> Tensor:
    """Sequence by sequence in float32.

    q [T, heads, d]; k, v [T, kv_heads, d], the new tokens of all sequences one after the other, `starts` [S + 1] int32;
    pages [pages, page, kv_heads, d], table [S, most pages] int32, contexts [S] int32 valid tokens; mask [T, P + T] bool
    for the mode MASKED: its last T columns are the new tokens (only those of a row's own sequence count), the P before
    them the last P entries of each row's own context, as far as there are so many. All see what is older. Out as q.
    """
    out = torch.empty_like(q)
    group, past = q.shape[1] // k.shape[1], 0 if mask is None else mask.shape[1] - len(q)
    for s in range(len(contexts)):
        here, context = slice(int(starts[s]), int(starts[s + 1])), int(contexts[s])
        older = [pages[table[s].long()].flatten(0, 1)[:context] for pages in (key_pages, value_pages)]
        keys, values = (
            wide(torch.cat([old, new[here]])).repeat_interleave(group, 1)
            for old, new in zip(older, (k, v), strict=True)
        )
        scores = torch.einsum("qhd,khd->hqk", wide(q[here]), keys) / q.shape[2] ** 0.5
        seen = torch.ones(scores.shape[1:], dtype=torch.bool, device=q.device)
        if mask is None:
            seen[:, context:] = _visible(len(q[here]), context, mode, block, q.device)
        else:
            covered = min(past, context)
            seen[:, context - covered : context] = mask[here, past - covered : past]
            seen[:, context:] = mask[here, past:][:, here]
        scores.masked_fill_(~seen, -torch.inf)
        out[here] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), values).to(q.dtype)
    return out


def _visible(count: int, context: int, mode: Mode, block: int, device: torch.device) -> Tensor:
    place = torch.arange(count, device=device)
    if mode == Mode.BLOCK_CAUSAL:
        place = (place + context) // block
    seen = place[:, None] >= place[None, :]
    return torch.ones_like(seen) if mode == Mode.BIDIRECTIONAL else seen


@triton.jit
def _absorb(q, k, v, shown, scale, top, total, acc, WIDEN: tl.constexpr):
    """Take a tile of keys [N, D] and values [N, D] into the running softmax of rows [M]; `shown` [M, N] or [1, N]."""
    if WIDEN:
        q, k, v = q.to(tl.float32), k.to(tl.float32), v.to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(shown, scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, axis=1))
    safe = tl.where(new_top == float("-inf"), 0.0, new_top)  # a tile of which a row sees nothing
    weights = tl.exp(scores - safe[:, None])
    shrink = tl.exp(top - safe)
    acc = acc * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    return new_top, total * shrink + tl.sum(weights, axis=1), acc


@triton.jit
def _page(key_pages_ptr, value_pages_ptr, table_ptr, start, of, shown, PAGE: tl.constexpr, page_stride):
    """Keys and values [PAGE, D] of the page in which position `start` of a context lies."""
    page = tl.load(table_ptr + start // PAGE).to(tl.int64) * page_stride
    k = tl.load(key_pages_ptr + page + of, mask=shown, other=0.0)
    return k, tl.load(value_pages_ptr + page + of, mask=shown, other=0.0)


@triton.jit
def _canvas_attention_kernel(
    q_ptr,
    q_token_stride,
    k_ptr,
    v_ptr,
    k_token_stride,
    key_pages_ptr,
    value_pages_ptr,
    page_stride,
    slot_stride,
    kv_head_stride,
    table_ptr,
    table_stride,
    contexts_ptr,
    starts_ptr,
    mask_ptr,
    mask_stride,
    past,  # the mask's columns before the new tokens
    out_ptr,
    head_dim,
    scale,
    aligned,
    MODE: tl.constexpr,
    GROUP: tl.constexpr,  # query heads of a KV head
    PAGE: tl.constexpr,  # tokens a page, a power of two from 16 on: one page is one tile
    BLOCK_M: tl.constexpr,  # rows of a tile, a token's heads beside each other
    BLOCK_N: tl.constexpr,  # new tokens of a tile
    BLOCK_D: tl.constexpr,  # a power of two that holds a head
    WIDEN: tl.constexpr,  # multiply in float32: Triton's interpreter has no 16-bit products
):
    """BLOCK_M rows (token, head of the group) of one sequence and one KV head."""
    sequence = tl.program_id(0)
    kv_head = tl.program_id(1)
    first = tl.load(starts_ptr + sequence)
    count = tl.load(starts_ptr + sequence + 1) - first
    context = tl.load(contexts_ptr + sequence)
    rows = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
    token, d = rows // GROUP, tl.arange(0, BLOCK_D)
    in_row, in_head = token < count, d < head_dim
    if tl.program_id(2) * BLOCK_M < count * GROUP:
        at = (first + token).to(tl.int64) * q_token_stride + (kv_head * GROUP + rows % GROUP) * head_dim
        q = tl.load(q_ptr + at[:, None] + d[None, :], mask=in_row[:, None] & in_head[None, :], other=0.0)
        top = tl.full([BLOCK_M], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
        slots = tl.arange(0, PAGE)
        of = slots[:, None] * slot_stride + kv_head * kv_head_stride + d[None, :]
        own = table_ptr + sequence * table_stride
        line = mask_ptr + (first + token).to(tl.int64)[:, None] * mask_stride  # a row's own, in the mask
        hidden = context - past  # from here on a mask speaks
        whole = context
        if MODE == 3:
            whole = tl.minimum(tl.maximum(hidden, 0) // PAGE * PAGE, context)
        for start in range(0, whole, PAGE):
            old = start + slots < context
            k, v = _page(
                key_pages_ptr, value_pages_ptr, own, start, of, old[:, None] & in_head[None, :], PAGE, page_stride
            )
            top, total, acc = _absorb(q, k, v, old[None, :], scale, top, total, acc, WIDEN)
        if MODE == 3:
            for start in range(whole, context, PAGE):
                at_slot = start + slots
                old = at_slot < context
                k, v = _page(
                    key_pages_ptr, value_pages_ptr, own, start, of, old[:, None] & in_head[None, :], PAGE, page_stride
                )
                shown = old[None, :] & in_row[:, None]
                asked = shown & (at_slot >= hidden)[None, :]
                shown = shown & (tl.load(line + (at_slot - hidden)[None, :], mask=asked, other=1) != 0)
                top, total, acc = _absorb(q, k, v, shown, scale, top, total, acc, WIDEN)
        new = tl.arange(0, BLOCK_N)
        for start in range(0, count, BLOCK_N):
            other = start + new
            here = other < count
            beside = (first + other).to(tl.int64)[:, None] * k_token_stride + kv_head * head_dim + d[None, :]
            k = tl.load(k_ptr + beside, mask=here[:, None] & in_head[None, :], other=0.0)
            v = tl.load(v_ptr + beside, mask=here[:, None] & in_head[None, :], other=0.0)
            shown = here[None, :] & in_row[:, None]
            if MODE == 1:
                shown = shown & (token[:, None] >= other[None, :])
            if MODE == 2:
                shown = shown & ((context + token)[:, None] // aligned >= (context + other)[None, :] // aligned)
            if MODE == 3:
                shown = shown & (tl.load(line + (past + first + other)[None, :], mask=shown, other=0) != 0)
            top, total, acc = _absorb(q, k, v, shown, scale, top, total, acc, WIDEN)
        acc = acc / tl.where(total == 0.0, 1.0, total)[:, None]
        tl.store(out_ptr + at[:, None] + d[None, :], acc, mask=in_row[:, None] & in_head[None, :])


def canvas_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    table: Tensor,
    contexts: Tensor,
    starts: Tensor,
    mode: Mode,
    block: int = 1,
    mask: Tensor | None = None,
    longest: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`reference_canvas_attention` in one launch; `longest`: new tokens of the longest sequence, sparing a transfer.

    Rows of no sequence, behind the last one, are left as they are in `out`, which is as q.
    """
    count, heads, dim = q.shape
    page, kv_heads = key_pages.shape[1:3]
    assert page >= 16
    assert page & (page - 1) == 0
    assert q.is_contiguous()
    assert (mask is not None) == (mode == Mode.MASKED)
    assert mask is None or (mask.dtype == torch.bool and mask.is_contiguous() and mask.shape[1] >= len(mask) == count)
    assert k.stride() == v.stride() == (kv_heads * dim, dim, 1)
    assert key_pages.stride() == value_pages.stride()
    assert key_pages.stride(3) == 1
    assert q.dtype == k.dtype == v.dtype == key_pages.dtype == value_pages.dtype
    out, group = torch.empty_like(q) if out is None else out, heads // kv_heads
    assert out.stride() == q.stride()
    longest = int(starts.diff().max()) if longest is None else longest
    block_m = min(64, max(16, triton.next_power_of_2(longest * group)))
    if count:
        _canvas_attention_kernel[(len(contexts), kv_heads, triton.cdiv(longest * group, block_m))](
            q,
            q.stride(0),
            k,
            v,
            k.stride(0),
            key_pages,
            value_pages,
            *key_pages.stride()[:3],
            table,
            table.stride(0),
            contexts,
            starts,
            q if mask is None else mask.view(torch.uint8),
            0 if mask is None else mask.stride(0),
            0 if mask is None else mask.shape[1] - count,
            out,
            dim,
            dim**-0.5,
            block,
            MODE=int(mode),
            GROUP=group,
            PAGE=page,
            BLOCK_M=block_m,
            BLOCK_N=16 if longest <= 16 else 32,
            BLOCK_D=max(16, triton.next_power_of_2(dim)),
            WIDEN=triton.knobs.runtime.interpret,
            num_warps=4,
            num_stages=2,
        )
    return out
