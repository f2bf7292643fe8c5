"""What a pass costs by the number of tokens it reads: measured once a process, kept on disk, guessed until then.

Knows the transformer and a folder; knows no drafts.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from remask.contract.errors import StorageError
from remask.contract.places import cache_dir
from remask.engine.models.drafting import DraftHead
from remask.engine.models.model import Model
from remask.engine.models.passes import Pass
from remask.engine.models.transformer import Transformer

log = logging.getLogger(__name__)

SIZES = (1, 2, 4, 8, 9, 16, 24)  # tokens a pass; the C pass takes 8 at once
CONTEXT = 128  # tokens read before
ROUNDS = 3  # each size is timed so often, in turn, and the shortest counts
DRAFTED = 3  # tokens of a head's draft where its time is measured

GUESS = {1: 12.0, 2: 12.2, 4: 12.7, 8: 14.4, 9: 16.4, 16: 18.5, 24: 22.0}
"""Milliseconds of the default model on one CPU core in int8; only their ratios matter."""

_MEASURED: dict[str, PassCosts] = {}
_SHARES: dict[str, float] = {}


class PassCosts:
    """Milliseconds of a pass with its scores, by tokens read; between and beyond the measured sizes a line."""

    def __init__(self, ms: dict[int, float]) -> None:
        self._sizes = sorted(ms)
        highest = 0.0
        self._ms: list[float] = []
        for size in self._sizes:  # a larger pass that was faster was luck
            highest = max(highest, ms[size])
            self._ms.append(highest)

    def ms(self, tokens: float) -> float:
        """Milliseconds of a pass over so many tokens; 0 of none."""
        if tokens <= 0:
            return 0.0
        right = min(max(bisect_left(self._sizes, tokens), 1), len(self._sizes) - 1)
        (a, b), (low, high) = self._sizes[right - 1 : right + 1], self._ms[right - 1 : right + 1]
        return max(self._ms[0], low + (high - low) * (tokens - a) / (b - a))

    def per_row(self) -> float:
        """Milliseconds that one more token takes in a pass of several."""
        return (self._ms[-1] - self._ms[0]) / (self._sizes[-1] - self._sizes[0])

    def to_dict(self) -> dict[str, float]:
        """Milliseconds by size, as JSON values."""
        return {str(size): round(ms, 3) for size, ms in zip(self._sizes, self._ms, strict=True)}


def costs_of(model: Model, patient: bool, spent: Callable[[], bool] = lambda: False) -> PassCosts:
    """The model's pass costs: what this process or an earlier one measured, or a measurement where one is patient.

    Without patience, or where `spent` says so between two passes, a guess that is asked for again. Nothing depends on
    these figures but speed.
    """
    key = f"{model.fingerprint}-{model.transformer.device}-{torch.get_num_threads()}".replace("/", "_").replace(
        ":", "_"
    )
    if key not in _MEASURED and (stored := _load(key)) is not None:
        _MEASURED[key] = stored
    if key not in _MEASURED and patient and (measured := measure(model.transformer, spent)) is not None:
        _MEASURED[key] = measured
        _store(key, measured)
    return _MEASURED.get(key) or PassCosts(GUESS)


@torch.inference_mode()
def measure(transformer: Transformer, spent: Callable[[], bool] = lambda: False) -> PassCosts | None:
    """Time passes of every size behind a short context; None where `spent` ended it.

    On a CPU it is the process's own time that counts: what else the machine does would blur the ratios.
    """
    cache, device = transformer.new_cache(), transformer.device
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    transformer.forward(Pass.causal([1] * CONTEXT, 0, device), cache)
    cache.advance(CONTEXT)
    never = torch.empty(0, dtype=torch.int64, device=device)
    best = dict.fromkeys(SIZES, float("inf"))
    for _ in range(ROUNDS):
        for size in SIZES:
            if spent():
                return None
            step = Pass.causal([1] * size, CONTEXT, device)
            started = clock()
            transformer.best(transformer.forward(step, cache), never)  # waits for a GPU
            best[size] = min(best[size], (clock() - started) * 1000)
    return PassCosts(best)


def draft_share(model: Model) -> float:
    """What a token costs that the model's head drafts, in one-token passes; 0 without a head. Measured once a process.

    Passes and drafts in turn, as in decoding: a pass leaves little of the head in the processor's caches.
    """
    head = model.draft_head
    if head is None:
        return 0.0
    key = f"{model.fingerprint}-{torch.get_num_threads()}"
    if key not in _SHARES:
        _SHARES[key] = _measure_share(model.transformer, head)
    return _SHARES[key]


@torch.inference_mode()
def _measure_share(transformer: Transformer, head: DraftHead) -> float:
    cache, device = transformer.new_cache(), transformer.device
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    never = torch.empty(0, dtype=torch.int64, device=device)
    passes, drafts = [], []
    for _ in range(ROUNDS + 1):  # the first one warms up
        started = clock()
        hidden = transformer.forward(Pass.causal([1], 0, device), cache)
        transformer.best(hidden, never)
        read = clock()
        head.guess(hidden[0], 1, DRAFTED)
        passes.append(read - started)
        drafts.append(clock() - read)
    return min(drafts[1:]) / DRAFTED / max(min(passes[1:]), 1e-6)


def _file(key: str) -> Path:
    return cache_dir() / f"costs-{key}.json"


def _load(key: str) -> PassCosts | None:
    """What an earlier process stored; None where there is nothing that can be used, or other sizes."""
    try:
        ms = {int(size): float(value) for size, value in json.loads(_file(key).read_text("utf-8")).items()}
    except (OSError, StorageError, ValueError, TypeError, AttributeError):
        return None
    return PassCosts(ms) if sorted(ms) == [*SIZES] and all(0 < v < float("inf") for v in ms.values()) else None


def _store(key: str, costs: PassCosts) -> None:
    """Keep the figures for the next process; a disk that refuses is only logged, and nothing unfinished is left."""
    unfinished = ""
    try:
        target = _file(key)
        handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=target.name)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(costs.to_dict(), out)
        os.replace(unfinished, target)
    except (OSError, StorageError) as error:
        with suppress(OSError):
            os.unlink(unfinished)
        log.warning("What a pass costs cannot be kept, so that the next start measures it again: %s", error)
