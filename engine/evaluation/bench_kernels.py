"""Each Triton kernel on a card: its error against float64, and its time beside torch's own operations.

Needs a CUDA device and Triton; makes its own random inputs, of the sizes that a canvas meets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import InputError
from remask.engine.models.accelerated import kernels_run
from remask.engine.models.checkpoint import quantise
from remask.engine.models.matrix import FP8
from remask.engine.models.model import FP8_FROM
from remask.engine.models.paged import PAGE

EPS = 1e-6


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is tried: those of a 7B model, or tiny ones to try the bench itself. heads: of queries, and of keys."""

    canvases: tuple[int, ...] = (1, 8, 32)  # tokens
    contexts: tuple[int, ...] = (1024, 8192, 32768)
    width: int = 3584
    vocab: int = 152064
    outputs: int = 37888  # of a matrix: gate and up in one
    heads: tuple[int, int] = (28, 4)
    head_dim: int = 128
    repeats: int = 50


WHOLE = Sizes()
TINY = Sizes(canvases=(1, 3), contexts=(128,), width=64, vocab=300, outputs=96, heads=(4, 2), head_dim=16, repeats=1)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One size of one kernel. error: largest difference from float64; torch_error: that of torch's own operations."""

    kernel: str
    size: str
    error: float
    torch_error: float
    microseconds: float
    torch_microseconds: float
    speedup: float


@dataclass(frozen=True, slots=True)
class _Case:
    """What is run: `ours` and `theirs` in the given precision, `exact` in float64; each gives tensors to compare."""

    kernel: str
    size: str
    ours: Callable[[], Sequence[Tensor]]
    theirs: Callable[[], Sequence[Tensor]]
    exact: Callable[[], Sequence[Tensor]]


def bench_kernels(
    device: torch.device, dtype: torch.dtype = torch.bfloat16, sizes: Sizes = WHOLE
) -> Iterator[dict[str, Any]]:
    """All kernels at all sizes, one after the other as plain JSON values. Raises InputError where they do not run."""
    if not kernels_run(device):
        raise InputError(f"The kernels do not run on {device}.", advice="They need a CUDA card and remask[gpu].")
    return (asdict(_measured(case, device, sizes.repeats)) for case in _cases(device, dtype, sizes))


def _measured(case: _Case, device: torch.device, repeats: int) -> KernelRow:
    exact = case.exact()
    errors = [
        max(float((got.double() - want).abs().max()) for got, want in zip(run(), exact, strict=True))
        for run in (case.ours, case.theirs)
    ]
    ours, theirs = (_microseconds(run, device, repeats) for run in (case.ours, case.theirs))
    return KernelRow(
        kernel=case.kernel,
        size=case.size,
        error=errors[0],
        torch_error=errors[1],
        microseconds=round(ours, 1),
        torch_microseconds=round(theirs, 1),
        speedup=round(theirs / ours, 2),
    )


def _microseconds(run: Callable[[], object], device: torch.device, repeats: int) -> float:
    for _ in range(min(5, repeats)):
        run()
    times: list[float] = []
    for _ in range(repeats):
        if device.type != "cuda":
            started = time.perf_counter()
            run()
            times.append((time.perf_counter() - started) * 1e6)
            continue
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    return median(times)


def _cases(device: torch.device, dtype: torch.dtype, sizes: Sizes) -> Iterator[_Case]:
    def random(*size: int) -> Tensor:
        return torch.randn(*size, device=device, dtype=dtype)

    width, vocab = sizes.width, sizes.vocab
    for rows in sizes.canvases:
        yield _norm(random(rows, width), random(width))
        yield _confidence(random(rows, vocab) * 4)
        yield _head(random(rows, width), random(vocab, width) / width**0.5)
        for kind in _eight_bits(device):
            yield _scaled(random(rows, width), random(sizes.outputs, width) / width**0.5, kind)
        for context in sizes.contexts:
            yield _attention(random, rows, context, sizes)
        yield _branches(random, rows, sizes)


def _norm(x: Tensor, weight: Tensor) -> _Case:
    from remask.kernels.rms_norm import reference_rms_norm, rms_norm

    return _Case(
        "rms_norm",
        f"{len(x)} x {x.shape[1]}",
        lambda: [rms_norm(x, weight, EPS)],
        lambda: [F.rms_norm(x, weight.shape, weight, EPS)],
        lambda: [reference_rms_norm(x.double(), weight.double(), EPS)],
    )


def _confidence(logits: Tensor) -> _Case:
    from remask.kernels.confidence import confidence, reference_confidence

    never = torch.tensor([3, 5], device=logits.device)
    return _Case(
        "confidence",
        f"{len(logits)} x {logits.shape[1]}",
        lambda: confidence(logits, never)[1:],  # ties of 16 bits may name another token
        lambda: reference_confidence(logits, never)[1:],
        lambda: reference_confidence(logits.double(), never)[1:],
    )


def _head(hidden: Tensor, head: Tensor) -> _Case:
    from remask.kernels.confidence import reference_confidence
    from remask.kernels.confidence_head import confidence_head, reference_confidence_head

    never = torch.tensor([3, 5], device=hidden.device)
    return _Case(
        "confidence_head",
        f"{len(hidden)} x {head.shape[1]} x {len(head)}",
        lambda: confidence_head(hidden, head, never)[1:],
        lambda: reference_confidence(F.linear(hidden, head), never)[1:],
        lambda: reference_confidence_head(hidden.double(), head.double(), never)[1:],
    )


def _eight_bits(device: torch.device) -> list[torch.dtype]:
    """What weights of 8 bits can be held in here."""
    floats = device.type != "cuda" or torch.cuda.get_device_capability(device) >= FP8_FROM
    return [torch.int8, FP8] if floats else [torch.int8]


def _scaled(x: Tensor, matrix: Tensor, kind: torch.dtype) -> _Case:
    """8-bit weights beside torch's product with the same matrix in x's own precision, which is twice the bytes."""
    from remask.kernels.scaled_product import reference_scaled_product, scaled_product

    rows, scale = quantise(matrix, dtype=kind)
    plain = (rows.to(matrix.dtype).float() * scale[:, None]).to(matrix.dtype)
    return _Case(
        "scaled_product",
        f"{len(x)} x {x.shape[1]} x {len(matrix)} {'int8' if kind == torch.int8 else 'fp8'}",
        lambda: [scaled_product(x, rows, scale)],
        lambda: [F.linear(x, plain)],
        lambda: [reference_scaled_product(x.double(), rows, scale.double())],
    )


def _branches(random: Callable[..., Tensor], count: int, sizes: Sizes) -> _Case:
    """Rows of several branches behind one context, of whose last entries each sees every second one."""
    from remask.kernels.attention import Mode, canvas_attention, reference_canvas_attention

    (heads, kv_heads), dim, context, past = sizes.heads, sizes.head_dim, sizes.contexts[0], PAGE
    q, k, v = random(count, heads, dim), random(count, kv_heads, dim), random(count, kv_heads, dim)
    keys, values = (random(context // PAGE, PAGE, kv_heads, dim) for _ in range(2))
    all_keys, all_values = (
        torch.cat([pages.flatten(0, 1), new]).transpose(0, 1)[None] for pages, new in ((keys, k), (values, v))
    )
    mask = torch.ones(count, past + count, dtype=torch.bool, device=q.device)
    mask[::2, :past:2] = False
    mask[1::2, 1:past:2] = False
    whole = torch.ones(count, context + count, dtype=torch.bool, device=q.device)
    whole[:, context - past :] = mask
    order = torch.arange(context // PAGE, dtype=torch.int32, device=q.device)[None]
    contexts, starts = (torch.tensor(n, dtype=torch.int32, device=q.device) for n in ([context], [0, count]))
    place = (order, contexts, starts, Mode.MASKED)

    def exact() -> list[Tensor]:
        q64, k64, v64, keys64, values64 = (tensor.double() for tensor in (q, k, v, keys, values))
        return [reference_canvas_attention(q64, k64, v64, keys64, values64, *place, mask=mask)]

    def theirs() -> list[Tensor]:
        rows = q.transpose(0, 1)[None]
        both = F.scaled_dot_product_attention(rows, all_keys, all_values, attn_mask=whole, enable_gqa=True)
        return [both[0].transpose(0, 1)]

    return _Case(
        "canvas_attention",
        f"{count} on {context}, branches",
        lambda: [canvas_attention(q, k, v, keys, values, *place, mask=mask, longest=count)],
        theirs,
        exact,
    )


def _attention(random: Callable[..., Tensor], count: int, context: int, sizes: Sizes) -> _Case:
    from remask.kernels.attention import Mode, canvas_attention, reference_canvas_attention

    (heads, kv_heads), dim = sizes.heads, sizes.head_dim
    q, k, v = random(count, heads, dim), random(count, kv_heads, dim), random(count, kv_heads, dim)
    keys, values = (random(context // PAGE, PAGE, kv_heads, dim) for _ in range(2))
    all_keys, all_values = (
        torch.cat([pages.flatten(0, 1), new]).transpose(0, 1)[None] for pages, new in ((keys, k), (values, v))
    )

    def numbers(*values: int) -> Tensor:
        return torch.tensor(values, dtype=torch.int32, device=q.device)

    table, contexts, starts = numbers(*range(context // PAGE))[None], numbers(context), numbers(0, count)
    mode = Mode.BIDIRECTIONAL

    def exact() -> list[Tensor]:
        q64, k64, v64, keys64, values64 = (tensor.double() for tensor in (q, k, v, keys, values))
        return [reference_canvas_attention(q64, k64, v64, keys64, values64, table, contexts, starts, mode)]

    def theirs() -> list[Tensor]:
        rows = q.transpose(0, 1)[None]
        return [F.scaled_dot_product_attention(rows, all_keys, all_values, enable_gqa=True)[0].transpose(0, 1)]

    return _Case(
        "canvas_attention",
        f"{count} on {context}",
        lambda: [canvas_attention(q, k, v, keys, values, table, contexts, starts, mode, longest=count)],
        theirs,
        exact,
    )
