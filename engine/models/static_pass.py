"""A pass whose inputs always lie at the same places, so that it can be captured once and replayed.

Passes are padded to a few sizes, by tokens, sequences and what their masks cover. A size is captured when it is used
for the second time: by a CUDA graph on a card, elsewhere by a plain call of the same function, which is how it is
tested. Knows no kernel and no layer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from remask.engine.models.inputs import Inputs, Size
from remask.engine.models.paged import PAGE, PagedCache, PagePool
from remask.engine.models.passes import Pass

BUCKETS = (1, 2, 4, 8, 16, 24, 32, 64)  # tokens of a sequence; longer ones are prompts, where a launch costs little
SEQUENCES = (1, 2, 4, 8, 16)
PASTS = (0, 64, 256, 1024, 4096)  # entries before the new tokens that masks speak of
MOST_ROWS = 512  # of a pass over several sequences
WARM_UP = 2  # runs before a capture: kernels are compiled and libraries take their work space
logger = logging.getLogger(__name__)

Captured = Callable[[], Tensor]
"""Runs a pass on what lies in its buffers; hidden states [rows, width], perhaps in the same memory each time."""


class StaticPasses:
    """The captured passes of one transformer; `run` computes hidden states from inputs and the pool as it stands."""

    def __init__(self, pool: PagePool, run: Callable[[Inputs], Tensor], most_tokens: int) -> None:
        self._pool = pool
        self._run = run
        self._pages = -(-(most_tokens + BUCKETS[-1]) // PAGE) + 1
        self._spare = pool.take()
        self._generation = pool.generation
        self._inputs: dict[Size, Inputs] = {}
        self._captured: dict[Size, Captured] = {}
        self._uses: dict[Size, int] = {}
        self.usable = True  # until a capture fails

    def takes(self, steps: Sequence[Pass], caches: Sequence[PagedCache]) -> bool:
        """Whether passes fit a size and the tables."""
        fits = all(cache.length + BUCKETS[-1] <= self._pages * PAGE for cache in caches)
        return self.usable and fits and size_of(steps) is not None

    def forward(self, steps: Sequence[Pass], caches: Sequence[PagedCache]) -> Tensor:
        """Hidden states [R, width] of passes that `takes` accepts, one after the other."""
        size = size_of(steps)
        assert size is not None
        rows = sum(len(step.tokens) for step in steps)
        for step, cache in zip(steps, caches, strict=True):
            cache.reserve(len(step.tokens))
        if self._generation != self._pool.generation:  # the memory that was captured is gone
            self._captured.clear()
            self._generation = self._pool.generation
        if size not in self._inputs:
            self._inputs[size] = Inputs.empty(size, self._pages, self._pool.buffer.device)
        inputs = self._inputs[size]
        inputs.load(steps, caches, self._spare)
        self._uses[size] = self._uses.get(size, 0) + 1
        if size not in self._captured and self._uses[size] > 1:
            self._capture(size, inputs)
        run = self._captured.get(size)
        return self._run(inputs)[:rows] if run is None else run()[:rows].clone()  # the next pass writes there again

    def captured(self) -> list[Size]:
        """The sizes of the captured passes."""
        return sorted(self._captured)

    def _capture(self, size: Size, inputs: Inputs) -> None:
        try:
            self._captured[size] = capture(self._run, inputs)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            logger.warning(
                "Passes of %d tokens cannot be captured as CUDA graphs (%s); they run plainly.", size.rows, error
            )
            self._captured.clear()
            self.usable = False


def size_of(steps: Sequence[Pass]) -> Size | None:
    """The size that passes are padded to; None where they are too long, too many, or look back too far."""
    counts = [len(step.tokens) for step in steps]
    pasts = [step.mask.shape[1] - len(step.tokens) for step in steps if step.mask is not None]
    wanted = (max(counts), max(pasts, default=0), len(steps))
    found = [next((b for b in of if b >= n), 0) for of, n in zip((BUCKETS, PASTS, SEQUENCES), wanted, strict=True)]
    size = Size(found[0], bool(pasts), found[1], found[2])
    fits = min(counts) > 0 and size.past >= wanted[1] and 0 < size.rows <= MOST_ROWS
    return size if fits else None


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
