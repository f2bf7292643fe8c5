"""A pass whose inputs always lie at the same places, so that it can be captured once and replayed.

Passes are padded to a few sizes (buckets). The padding writes keys and values to scratch slots behind the pass and is
seen by nobody. A bucket is captured when it is used for the second time: by a CUDA graph on a card, elsewhere by a
plain call of the same function, which is how it is tested. Knows no kernel and no layer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from remask.engine.models.paged import PAGE, PagedCache, PagePool
from remask.engine.models.transformer import Pass

BUCKETS = (1, 2, 4, 8, 16, 24, 32, 64)  # tokens of a pass; longer ones are prompts, where a launch costs little
WARM_UP = 2  # runs before a capture: kernels are compiled and libraries take their work space
logger = logging.getLogger(__name__)

Captured = Callable[[], Tensor]
"""Runs a pass on what lies in its buffers; hidden states [bucket, width], perhaps in the same memory each time."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a pass of `len(tokens)` rows reads, on the device. The first `starts[1]` rows count.

    tokens, positions: [B] int64. mask: [B, B] bool or None. table: [1, pages] int32. contexts [1], starts [2] int32.
    """

    tokens: Tensor
    positions: Tensor
    mask: Tensor | None
    table: Tensor
    contexts: Tensor
    starts: Tensor

    @classmethod
    def empty(cls, bucket: int, masked: bool, pages: int, device: torch.device) -> Inputs:
        """Buffers of one bucket, all zeros; `pages` bounds the context."""

        def zeros(*size: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(size, dtype=dtype, device=device)

        mask = zeros(bucket, bucket, dtype=torch.bool) if masked else None
        tokens, positions = (zeros(bucket, dtype=torch.int64) for _ in range(2))
        return cls(tokens, positions, mask, zeros(1, pages), zeros(1), zeros(2))

    def load(self, step: Pass, cache: PagedCache) -> None:
        """Copy a pass in. Nothing here waits for the device."""
        count = len(step.tokens)
        self.tokens[:count].copy_(step.tokens, non_blocking=True)
        self.positions[:count].copy_(step.positions, non_blocking=True)
        if self.mask is not None and step.mask is not None:
            self.mask[:count, :count].copy_(step.mask, non_blocking=True)
        pages = cache.page_table()
        self.table[0, : len(pages)].copy_(pages, non_blocking=True)
        self.contexts.fill_(cache.length)
        self.starts[1].fill_(count)

    def slots(self) -> Tensor:
        """Where each row's entries go in the pool: [B] int64. Computed on the device from the context and the table."""
        at = self.contexts.long() + torch.arange(len(self.tokens), device=self.tokens.device)
        return self.table[0].long()[at // PAGE] * PAGE + at % PAGE


class StaticPasses:
    """The captured passes of one transformer; `run` computes hidden states from inputs and the pool as it stands."""

    def __init__(self, pool: PagePool, run: Callable[[Inputs], Tensor], most_tokens: int) -> None:
        self._pool = pool
        self._run = run
        self._pages = -(-(most_tokens + BUCKETS[-1]) // PAGE) + 1
        self._generation = pool.generation
        self._inputs: dict[tuple[int, bool], Inputs] = {}
        self._captured: dict[tuple[int, bool], Captured] = {}
        self._uses: dict[tuple[int, bool], int] = {}
        self.usable = True  # until a capture fails

    def takes(self, step: Pass, cache: PagedCache) -> bool:
        """Whether a pass fits a bucket and the tables."""
        count = len(step.tokens)
        return self.usable and 0 < count <= BUCKETS[-1] and cache.length + BUCKETS[-1] <= self._pages * PAGE

    def forward(self, step: Pass, cache: PagedCache) -> Tensor:
        """Hidden states [T, width] of a pass that `takes` accepts."""
        count = len(step.tokens)
        key = next(size for size in BUCKETS if size >= count), step.mask is not None
        cache.reserve(key[0])  # the padding's scratch slots, too
        if self._generation != self._pool.generation:  # the memory that was captured is gone
            self._captured.clear()
            self._generation = self._pool.generation
        if key not in self._inputs:
            self._inputs[key] = Inputs.empty(*key, self._pages, self._pool.buffer.device)
        inputs = self._inputs[key]
        inputs.load(step, cache)
        self._uses[key] = self._uses.get(key, 0) + 1
        if key not in self._captured and self._uses[key] > 1:
            self._capture(key, inputs)
        run = self._captured.get(key)
        return self._run(inputs)[:count] if run is None else run()[:count].clone()  # the next pass writes there again

    def captured(self) -> list[tuple[int, bool]]:
        """The sizes of the captured passes, and whether they are masked."""
        return sorted(self._captured)

    def _capture(self, key: tuple[int, bool], inputs: Inputs) -> None:
        try:
            self._captured[key] = capture(self._run, inputs)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            logger.warning(
                "Passes of %d tokens cannot be captured as CUDA graphs (%s); they run plainly.", *key[:1], error
            )
            self._captured.clear()
            self.usable = False


def capture(run: Callable[[Inputs], Tensor], inputs: Inputs) -> Captured:
    """`run` on these very inputs, as a CUDA graph where they lie on a card. Raises RuntimeError."""
    if inputs.tokens.device.type != "cuda":
        return lambda: run(inputs)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run(inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = run(inputs)

    def replay() -> Tensor:
        graph.replay()
        return out

    return replay
