"""All tables of a card by one call: each kernel, then whole passes of several shapes, as lines that are kept at once.

A part that fails, or that does not fit or run here, becomes a line that says so, and the next one starts. What is not
begun when the time is up is named. Knows nothing of files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from remask.contract.errors import RemaskError
from remask.engine.evaluation.bench_batch import bench_batch
from remask.engine.evaluation.bench_kernels import TINY, WHOLE, Sizes, bench_kernels
from remask.engine.evaluation.bench_pass import bench_pass
from remask.engine.evaluation.shapes import random_transformer, shape_named
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run
from remask.engine.models.model import choose_dtype

Line = dict[str, Any]
Part = Callable[[], Iterator[Line]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured. A shape is one of `shapes.SHAPES`; tokens and contexts are those of a pass.

    weights: precisions of weights beside `dtype`, which kernels are tried in. sequences: of one pass, each of the
    largest number of tokens behind the first context.
    """

    shapes: Sequence[str] = ("smollm2-135m", "qwen2.5-1.5b", "qwen2.5-7b", "qwen3-8b", "diffusiongemma-26b-a4b")
    contexts: Sequence[int] = (1024, 8192, 32000)
    tokens: Sequence[int] = (1, 8, 16, 32)
    repeats: int = 20
    dtype: torch.dtype = torch.bfloat16
    kernels: Sizes = WHOLE
    weights: Sequence[str] = ("int8", "fp8")
    sequences: Sequence[int] = (1, 2, 4, 8)


DRY = Plan(("tiny", "tiny-gemma"), (64,), (1, 4), 1, torch.float32, TINY, ("int8",), (1, 3))
"""A few small sizes that any machine does in seconds: whether the bench works, not how fast anything is."""


def bench_gpu(device: torch.device, plan: Plan, seconds: float = float("inf")) -> Iterator[Line]:
    """Lines of the kinds machine, kernel, pass, batch, passes (what was captured), skipped, failed and left out."""
    ends = time.monotonic() + seconds
    yield _machine(device)
    parts: list[tuple[str, Part]] = [("kernels", lambda: _kernels(device, plan))]
    for shape in plan.shapes:
        parts.append((shape, partial(_passes, shape, "", device, plan)))
        if not shape_named(shape).experts:
            parts += [
                (f"{shape} {weights}", partial(_passes, shape, weights, device, plan)) for weights in plan.weights
            ]
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
        except RemaskError as error:  # it does not fit, or does not run here
            yield {"kind": "skipped", "what": name, "why": str(error)}
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


def _passes(shape: str, weights: str, device: torch.device, plan: Plan) -> Iterator[Line]:
    """Each context a run of its own, so that one that does not fit costs no other."""
    transformer = random_transformer(shape, choose_dtype(weights, device) if weights else plan.dtype, device)
    for context in plan.contexts:
        report = bench_pass(
            shape, transformer, contexts=(context,), blocks=plan.tokens, repeats=plan.repeats, random_weights=True
        )
        values = report.to_dict()
        rows = values.pop("rows")
        for row in rows:
            yield {"kind": "pass"} | row | {"passes_a_second": round(1000 / row["ms"], 1)} | values
    for sequences in () if transformer.shape.experts else plan.sequences:
        row = bench_batch(transformer, sequences, plan.tokens[-1], plan.contexts[0], plan.repeats)
        yield {"kind": "batch", "model": shape, "random_weights": True} | row
    if isinstance(transformer, AcceleratedTransformer):
        yield {"kind": "passes"} | transformer.state()
