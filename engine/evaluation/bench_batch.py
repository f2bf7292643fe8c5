"""How long a pass over several sequences takes: each behind a context of its own, the weights read once for all.

Forward, and what denoising takes from it, brought over by one transfer. Decodes nothing.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import Any

import torch

from remask.engine.evaluation.bench_pass import WARM_UP, filled, seconds_of
from remask.engine.models.kv import KVCache
from remask.engine.models.passes import Pass
from remask.engine.models.transformer import Transformer


def bench_batch(transformer: Transformer, sequences: int, tokens: int, context: int, repeats: int) -> dict[str, Any]:
    """The median of `repeats` passes over so many sequences of `tokens` new tokens, as plain JSON values."""
    device = transformer.device
    caches = [filled(transformer, context, device) for _ in range(sequences)]
    steps = [Pass.canvas([(7 * i + 11) % 500 for i in range(tokens)], context, device)] * sequences
    run = partial(_pass, transformer, steps, caches)
    times = [seconds_of(run, device, time.perf_counter) for _ in range(WARM_UP + repeats)][WARM_UP:]
    ms = median(times) * 1000
    return {
        "sequences": sequences,
        "tokens": tokens,
        "context": context,
        "dtype": str(transformer.dtype).removeprefix("torch."),
        "ms": round(ms, 3),
        "ms_a_sequence": round(ms / sequences, 3),
    }


def _pass(transformer: Transformer, steps: list[Pass], caches: list[KVCache]) -> object:
    hidden = torch.cat(transformer.forward_all(steps, caches))
    never = torch.zeros(1, dtype=torch.int64, device=hidden.device)
    return transformer.confidence(hidden, never).on_cpu()
