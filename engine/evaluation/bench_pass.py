"""How long one pass takes, by block size and context length, against what the machine allows.

A pass is forward and scores; on a card forward and what denoising takes from it, brought over by one transfer.
Floors: the bytes that a pass must read (weights, head, keys and values) at the bandwidth measured here, and its
multiplications at the rate measured here. Decodes nothing; random weights time as trained ones do and say nothing
about quality.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from typing import Any, Protocol

import torch
from torch import Tensor

from remask.contract.errors import InputError, ModelError
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run
from remask.engine.models.checkpoint import expected_tensors
from remask.engine.models.kv import KVCache
from remask.engine.models.native import NativeTransformer
from remask.engine.models.spec import Shape
from remask.engine.models.transformer import Confidence, Pass, Transformer

Clock = Callable[[], float]
BLOCKS = (1, 2, 4, 8, 16, 32)
CONTEXTS = (0, 512, 2048, 8192)
WARM_UP = 3
PROBE_BYTES = 256 * 2**20  # larger than a share of any cache
PROBE_SIZE = 1024


class Runs(Protocol):
    """What is timed: a transformer of any kind."""

    shape: Shape

    def new_cache(self) -> KVCache:
        """An empty cache."""

    def forward(self, step: Pass, cache: KVCache) -> Tensor:
        """Hidden states [T, width]."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores [T, vocab]."""


def _dense(layers: int, width: int, heads: tuple[int, int], mlp: int, vocab: int, **more: Any) -> Shape:
    values: dict[str, Any] = {"head_dim": width // heads[0], "rope_theta": 1e6, "norm_eps": 1e-6} | more
    return Shape(
        layers=layers,
        width=width,
        heads=heads[0],
        kv_heads=heads[1],
        mlp_width=mlp,
        vocab=vocab,
        max_positions=32768,
        tied_embeddings=values.pop("tied", False),
        **values,
    )


SHAPES: Mapping[str, Shape] = {  # as in the models' own config.json, but for the first, which is nobody's
    "tiny": _dense(2, 64, (4, 2), 128, 512),
    "smollm2-135m": _dense(30, 576, (9, 3), 1536, 49152, tied=True, rope_theta=1e5, norm_eps=1e-5),
    "qwen2.5-0.5b": _dense(24, 896, (14, 2), 4864, 151936, tied=True, qkv_bias=True),
    "qwen2.5-1.5b": _dense(28, 1536, (12, 2), 8960, 151936, tied=True, qkv_bias=True),
    "qwen2.5-7b": _dense(28, 3584, (28, 4), 18944, 152064, qkv_bias=True),
    "qwen3-8b": _dense(36, 4096, (32, 8), 12288, 151936, head_dim=128, qk_norm=True),
}


@dataclass(frozen=True, slots=True)
class PassRow:
    """One size's figures, milliseconds. ratio: to the higher floor. to_one: to the one-token pass of that context."""

    context: int
    tokens: int
    ms: float
    floor_bytes_ms: float
    floor_operations_ms: float
    ratio: float
    to_one: float
    baseline_ms: float | None
    speedup: float | None


@dataclass(slots=True)
class PassReport:
    """What `remask bench pass` prints."""

    model: str
    random_weights: bool
    dtype: str
    device: str
    threads: int
    load_average: float
    processor_time: bool
    bandwidth_gb_s: float
    gflop_s: float
    rows: list[PassRow] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def random_transformer(name: str, dtype: torch.dtype, device: torch.device) -> Transformer:
    """A transformer of a published shape with random weights. Raises InputError or ModelError."""
    weights = random_weights(name, dtype, device)
    kind = NativeTransformer if dtype == torch.int8 else Transformer
    return (AcceleratedTransformer if kernels_run(device) else kind)(SHAPES[name], weights)


def random_weights(name: str, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    """Weights of a published shape, as `read_weights` would give them. Raises InputError or ModelError."""
    if name not in SHAPES:
        raise InputError(f"The shape {name!r} is not known.", advice=f"Choose from {', '.join(SHAPES)}.")
    shape = SHAPES[name]
    try:
        if dtype == torch.int8:
            return _random_int8(shape)
        sizes = expected_tensors(shape)
        weights = {n: torch.empty(s, dtype=dtype, device=device) for n, s in sizes.items()}
    except RuntimeError:  # torch.OutOfMemoryError is one; the CPU allocator raises the bare class
        gigabytes = shape.parameters * dtype.itemsize / 1e9
        raise ModelError(f"The shape {name} needs {gigabytes:.1f} GB, which {device} does not have free.") from None
    for weight in weights.values():
        weight.normal_(0, 0.02) if weight.ndim == 2 else weight.fill_(1)
    return weights


def bench_pass(
    name: str,
    transformer: Transformer,
    baseline: Runs | None = None,
    *,
    contexts: Sequence[int] = CONTEXTS,
    blocks: Sequence[int] = BLOCKS,
    repeats: int = 20,
    random_weights: bool = False,
    processor_time: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> PassReport:
    """Time every block size at every context, fast and baseline in turn; medians of `repeats` rounds.

    `processor_time` counts what this process itself uses, which other programs' work disturbs less: the time of a pass
    only with one thread.
    """
    clock = time.process_time if processor_time else time.perf_counter
    device = transformer.device
    report = PassReport(
        model=name,
        random_weights=random_weights,
        dtype=str(transformer.dtype).removeprefix("torch."),
        device=str(device),
        threads=torch.get_num_threads(),
        load_average=round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0,
        processor_time=processor_time,
        bandwidth_gb_s=round(bandwidth(device, clock), 1),
        gflop_s=round(multiplication_rate(device, clock), 1),
    )
    for context in contexts:
        runs = [transformer] if baseline is None else [transformer, baseline]
        times = _rounds(runs, context, blocks, repeats, device, clock, advance)
        for tokens in blocks:
            floors = _floors(transformer, tokens, context, report)
            fast, slow = times[0][tokens], times[1][tokens] if baseline else None
            report.rows.append(
                PassRow(
                    context=context,
                    tokens=tokens,
                    ms=round(fast, 3),
                    floor_bytes_ms=round(floors[0], 3),
                    floor_operations_ms=round(floors[1], 3),
                    ratio=round(fast / max(floors), 2),
                    to_one=round(fast / times[0][blocks[0]], 2),
                    baseline_ms=None if slow is None else round(slow, 3),
                    speedup=None if slow is None else round(slow / fast, 2),
                )
            )
    return report


def bandwidth(device: torch.device, clock: Clock = time.perf_counter) -> float:
    """Gigabytes a second that are read from memory, the best of a few readings of a large tensor."""
    held = torch.ones(PROBE_BYTES // 4, device=device)
    return PROBE_BYTES / 1e9 / min(_seconds(held.sum, device, clock) for _ in range(5))


def multiplication_rate(device: torch.device, clock: Clock = time.perf_counter) -> float:
    """Giga-operations a second (a multiplication and an addition are two) of a large bfloat16 product."""
    matrix = torch.ones(PROBE_SIZE, PROBE_SIZE, dtype=torch.bfloat16, device=device)
    return 2 * PROBE_SIZE**3 / 1e9 / min(_seconds(lambda: matrix @ matrix, device, clock) for _ in range(5))


def _rounds(
    runs: Sequence[Runs],
    context: int,
    blocks: Sequence[int],
    repeats: int,
    device: torch.device,
    clock: Clock,
    advance: Callable[[], None],
) -> list[dict[int, float]]:
    """Median milliseconds by run and block size; every round goes through all, so that a busy spell hits all."""
    caches = [_filled(run, context, device) for run in runs]
    times: list[dict[int, list[float]]] = [{tokens: [] for tokens in blocks} for _ in runs]
    for repeat in range(-WARM_UP, repeats):
        for tokens in blocks:
            step = Pass.canvas([(7 * i + 11) % 1000 for i in range(tokens)], context, device)
            for run, cache, kept in zip(runs, caches, times, strict=True):
                seconds = _seconds(partial(_pass, run, step, cache), device, clock)
                if repeat >= 0:
                    kept[tokens].append(seconds * 1000)
        advance()
    return [{tokens: median(values) for tokens, values in kept.items()} for kept in times]


def _filled(run: Runs, context: int, device: torch.device) -> KVCache:
    """A cache with some entries: what they are does not change how long a pass takes."""
    s, cache = run.shape, run.new_cache()
    if context:
        cache.restore(torch.rand(2, s.layers, s.kv_heads, context, s.head_dim, device=device).to(cache.dtype))
    return cache


def _pass(run: Runs, step: Pass, cache: KVCache) -> object:
    """Forward and scores; on a card what denoising takes from it: decisions, brought over by one transfer."""
    hidden = run.forward(step, cache)
    if hidden.device.type != "cuda":
        return run.logits(hidden)
    never = torch.zeros(1, dtype=torch.int64, device=hidden.device)
    made = run.confidence(hidden, never) if isinstance(run, Transformer) else Confidence.of(run.logits(hidden))
    return made.on_cpu()


def _seconds(action: Callable[[], object], device: torch.device, clock: Clock) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = clock()
    action()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - started


def _floors(transformer: Transformer, tokens: int, context: int, report: PassReport) -> tuple[float, float]:
    """Milliseconds that reading and that multiplying take at the measured rates."""
    s = transformer.shape
    embedding = 0 if s.tied_embeddings else s.vocab * s.width  # looked up, not read
    matrices = s.parameters - embedding
    width = 2 if transformer.dtype == torch.int8 else transformer.dtype.itemsize  # of keys and values
    read = matrices * transformer.dtype.itemsize + s.kv_values_per_token * (context + tokens) * width
    scored = 4 * s.layers * s.heads * s.head_dim * (context + tokens)
    return read / report.bandwidth_gb_s / 1e6, tokens * (2 * matrices + scored) / report.gflop_s / 1e6


def _random_int8(shape: Shape) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for name, size in expected_tensors(shape).items():
        if len(size) == 1:
            weights[name] = torch.ones(size)
            continue
        weights[name] = torch.randint(-127, 128, size, dtype=torch.int8)
        weights[f"{name}_scale"] = torch.full(size[:1], 0.02 / 73)
    return weights
