"""How long one pass takes, by block size and context length, against what the machine allows.

A pass is forward and scores; on a card forward and what denoising takes from it, brought over by one transfer.
Floors: the bytes that a pass must read (weights, head, keys and values) at the bandwidth measured here, and its
multiplications at the rate measured here. Decodes nothing; random weights time as trained ones do and say nothing
about quality.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from typing import Any, Protocol

import torch
from torch import Tensor

from remask.engine.evaluation.random_gemma import read_context
from remask.engine.models.gemma import GemmaCache, GemmaTransformer
from remask.engine.models.kv import KVCache
from remask.engine.models.matrix import EIGHT_BITS
from remask.engine.models.passes import Confidence, Pass
from remask.engine.models.spec import Shape
from remask.engine.models.transformer import Transformer

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
    return PROBE_BYTES / 1e9 / min(seconds_of(held.sum, device, clock) for _ in range(5))


def multiplication_rate(device: torch.device, clock: Clock = time.perf_counter) -> float:
    """Giga-operations a second (a multiplication and an addition are two) of a large bfloat16 product."""
    matrix = torch.ones(PROBE_SIZE, PROBE_SIZE, dtype=torch.bfloat16, device=device)
    return 2 * PROBE_SIZE**3 / 1e9 / min(seconds_of(lambda: matrix @ matrix, device, clock) for _ in range(5))


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
    caches = [filled(run, context, device) for run in runs]
    times: list[dict[int, list[float]]] = [{tokens: [] for tokens in blocks} for _ in runs]
    for repeat in range(-WARM_UP, repeats):
        for tokens in blocks:
            step = Pass.canvas([(7 * i + 11) % 1000 for i in range(tokens)], context, device)
            for run, cache, kept in zip(runs, caches, times, strict=True):
                seconds = seconds_of(partial(_pass, run, step, cache), device, clock)
                if repeat >= 0:
                    kept[tokens].append(seconds * 1000)
        advance()
    return [{tokens: median(values) for tokens, values in kept.items()} for kept in times]


def filled(run: Runs, context: int, device: torch.device) -> KVCache:
    """A cache with some entries: what they are does not change how long a pass takes."""
    if isinstance(run, GemmaTransformer):
        return read_context(run, context)
    s, cache = run.shape, run.new_cache()
    if context:
        cache.restore(torch.rand(2, s.layers, s.kv_heads, context, s.head_dim, device=device).to(cache.dtype))
    return cache


def _pass(run: Runs, step: Pass, cache: KVCache) -> object:
    """Forward and scores; on a card what denoising takes from it: decisions, brought over by one transfer."""
    if isinstance(run, GemmaTransformer) and isinstance(cache, GemmaCache):
        return Confidence.of(run.denoise(step.tokens, None, cache)[0].float()).on_cpu()
    hidden = run.forward(step, cache)
    if hidden.device.type != "cuda":
        return run.logits(hidden)
    never = torch.zeros(1, dtype=torch.int64, device=hidden.device)
    made = run.confidence(hidden, never) if isinstance(run, Transformer) else Confidence.of(run.logits(hidden))
    return made.on_cpu()


def seconds_of(action: Callable[[], object], device: torch.device, clock: Clock) -> float:
    """How long something takes, with all that it leaves a card to do."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = clock()
    action()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - started


def _floors(transformer: Transformer, tokens: int, context: int, report: PassReport) -> tuple[float, float]:
    """Milliseconds that reading and that multiplying take at the measured rates.

    Of a mixture of experts, those are read that so many tokens meet where each one chooses its own by chance.
    """
    s = transformer.shape
    embedding = 0 if s.tied_embeddings else s.vocab * s.width  # looked up, not read
    dense = s.parameters - embedding - s.expert_parameters
    share = s.experts_each / s.experts if s.experts else 0.0
    read = (dense + s.expert_parameters * (1 - (1 - share) ** tokens)) * transformer.dtype.itemsize
    width = 2 if transformer.dtype in EIGHT_BITS else transformer.dtype.itemsize  # of keys and values
    read += s.kv_values_per_token * (context + tokens) * width
    multiplied = 2 * (dense + s.expert_parameters * share) + 4 * s.layers * s.heads * s.head_dim * (context + tokens)
    return read / report.bandwidth_gb_s / 1e6, tokens * multiplied / report.gflop_s / 1e6
