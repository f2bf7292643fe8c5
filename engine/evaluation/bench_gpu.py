"""All tables of a card by one call: each kernel, then whole passes of several shapes, as lines that are kept at once.

A part that fails or does not fit becomes a line that says so, and the next one starts. What is not begun when the time
is up is named. Knows nothing of files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from remask.engine.evaluation.bench_kernels import TINY, WHOLE, Sizes, bench_kernels
from remask.engine.evaluation.bench_pass import bench_pass, random_transformer
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run

Line = dict[str, Any]
Part = Callable[[], Iterator[Line]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured. A shape is one of `bench_pass.SHAPES`; tokens and contexts are those of a pass."""

    shapes: Sequence[str] = ("smollm2-135m", "qwen2.5-1.5b", "qwen2.5-7b", "qwen3-8b")
    contexts: Sequence[int] = (1024, 8192, 32000)
    tokens: Sequence[int] = (1, 8, 16, 32)
    repeats: int = 20
    dtype: torch.dtype = torch.bfloat16
    kernels: Sizes = WHOLE


DRY = Plan(("tiny",), (64,), (1, 4), 1, torch.float32, TINY)
"""A few small sizes that any machine does in seconds: whether the bench works, not how fast anything is."""


def bench_gpu(device: torch.device, plan: Plan, seconds: float = float("inf")) -> Iterator[Line]:
    """Lines of the kinds machine, kernel, pass, passes (what was captured), failed and left out."""
    ends = time.monotonic() + seconds
    yield _machine(device)
    parts: list[tuple[str, Part]] = [("kernels", lambda: _kernels(device, plan))]
    parts += [(shape, lambda shape=shape: _passes(shape, device, plan)) for shape in plan.shapes]  # type: ignore[misc]
    for name, part in parts:
        if time.monotonic() > ends:
            yield {"kind": "left out", "what": name}
            continue
        try:
            for line in part():
                yield line | {"what": name}
                if time.monotonic() > ends:
                    yield {"kind": "left out", "what": f"the rest of {name}"}
                    break
        except Exception as error:  # a card's compiler, driver or memory: the other parts still count
            yield {"kind": "failed", "what": name, "error": f"{type(error).__name__}: {error}"[:500]}
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _machine(device: torch.device) -> Line:
    line: Line = {"kind": "machine", "device": str(device), "torch": torch.__version__, "kernels": kernels_run(device)}
    if device.type == "cuda":
        facts = torch.cuda.get_device_properties(device)
        line |= {"card": facts.name, "gigabytes": round(facts.total_memory / 1e9, 1), "cuda": torch.version.cuda}
    return line


def _kernels(device: torch.device, plan: Plan) -> Iterator[Line]:
    for row in bench_kernels(device, plan.dtype, plan.kernels):
        yield {"kind": "kernel"} | row


def _passes(shape: str, device: torch.device, plan: Plan) -> Iterator[Line]:
    """Each context a run of its own, so that one that does not fit costs no other."""
    transformer = random_transformer(shape, plan.dtype, device)
    for context in plan.contexts:
        report = bench_pass(
            shape, transformer, contexts=(context,), blocks=plan.tokens, repeats=plan.repeats, random_weights=True
        )
        values = report.to_dict()
        rows = values.pop("rows")
        for row in rows:
            yield {"kind": "pass"} | row | {"passes_a_second": round(1000 / row["ms"], 1)} | values
    if isinstance(transformer, AcceleratedTransformer):
        yield {"kind": "passes"} | transformer.state()
