"""What a pass reads, on the device: the new tokens of one or several sequences behind each other, and where they lie.

Either as it comes, or copied into buffers that stay where they are, padded to a size. The padding writes its keys and
values to a page that nobody reads. Knows no kernel and no layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from remask.engine.models.paged import PAGE, PagedCache
from remask.engine.models.passes import Pass
from remask.engine.models.transfer import sent


class Size(NamedTuple):
    """What buffers hold: `sequences` of `tokens` new ones each, all in all; `past`: entries that masks speak of."""

    tokens: int
    masked: bool
    past: int = 0
    sequences: int = 1

    @property
    def rows(self) -> int:
        """New tokens of all sequences."""
        return self.tokens * self.sequences


@dataclass(frozen=True, slots=True)
class Inputs:
    """A pass of R rows and S sequences. The first `starts[S]` rows count.

    tokens, positions, slots: [R] int64, slots being places in the pool. mask: [R, P + R] bool or None: of the last P
    entries of each row's own context, and of the rows. table: [S, pages], contexts: [S], starts: [S + 1], int32.
    longest: rows of the longest sequence, or more.
    """

    tokens: Tensor
    positions: Tensor
    slots: Tensor
    mask: Tensor | None
    table: Tensor
    contexts: Tensor
    starts: Tensor
    longest: int

    @classmethod
    def of(cls, steps: Sequence[Pass], caches: Sequence[PagedCache]) -> Inputs:
        """Passes as they come, each behind its own sequence, which has room for it."""
        device = steps[0].tokens.device
        counts = [len(step.tokens) for step in steps]
        most = max(len(cache.pages) for cache in caches)
        table = torch.zeros(len(caches), most, dtype=torch.int32, device=device)
        for row, cache in zip(table, caches, strict=True):
            pages = cache.page_table()
            row[: len(pages)] = pages
        numbers = sent([*(cache.length for cache in caches), *_starts(counts)], device, torch.int32)
        mask = None if len(steps) > 1 or steps[0].mask is None else steps[0].mask.contiguous()
        if len(steps) > 1 and any(step.mask is not None for step in steps):
            past = max(_past(step) for step in steps)
            mask = torch.zeros(sum(counts), past + sum(counts), dtype=torch.bool, device=device)
            _fill(mask, steps, past)
        return cls(
            torch.cat([step.tokens for step in steps]),
            torch.cat([step.positions for step in steps]),
            sent(_slots(caches, counts), device),
            mask,
            table,
            numbers[: len(caches)],
            numbers[len(caches) :],
            max(counts),
        )

    @classmethod
    def empty(cls, size: Size, pages: int, device: torch.device) -> Inputs:
        """Buffers of one size, all zeros; `pages` bounds the contexts."""

        def zeros(*sizes: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(sizes, dtype=dtype, device=device)

        rows = size.rows
        mask = zeros(rows, size.past + rows, dtype=torch.bool) if size.masked else None
        tokens, positions, slots = (zeros(rows, dtype=torch.int64) for _ in range(3))
        numbers = zeros(2 * size.sequences + 1)
        contexts, starts = numbers[: size.sequences], numbers[size.sequences :]
        return cls(tokens, positions, slots, mask, zeros(size.sequences, pages), contexts, starts, size.tokens)

    def load(self, steps: Sequence[Pass], caches: Sequence[PagedCache], spare: int) -> None:
        """Copy passes in; `spare` is the page that the padding may write to. Nothing here waits for the device."""
        counts, device = [len(step.tokens) for step in steps], self.tokens.device
        total, rows, sequences = sum(counts), len(self.tokens), len(self.contexts)
        for buffer, parts in (
            (self.tokens, [step.tokens for step in steps]),
            (self.positions, [step.positions for step in steps]),
        ):
            buffer[:total].copy_(parts[0] if len(parts) == 1 else torch.cat(parts), non_blocking=True)
        padding = [spare * PAGE + at % PAGE for at in range(rows - total)]
        self.slots.copy_(sent([*_slots(caches, counts), *padding], device), non_blocking=True)
        for row, cache in zip(self.table, caches, strict=False):
            pages = cache.page_table()
            row[: len(pages)].copy_(pages, non_blocking=True)
        nobody = sequences - len(caches)  # sequences without rows
        lengths = [*(cache.length for cache in caches), *[0] * nobody]
        numbers = sent([*lengths, *_starts(counts), *[total] * nobody], device, torch.int32)
        self.contexts.copy_(numbers[:sequences], non_blocking=True)
        self.starts.copy_(numbers[sequences:], non_blocking=True)
        if self.mask is not None:
            _fill(self.mask, steps, self.mask.shape[1] - rows)


def _fill(mask: Tensor, steps: Sequence[Pass], past: int) -> None:
    """Who sees whom, [R, past + R]: what no mask speaks of is seen."""
    first = 0
    for step in steps:
        count, own = len(step.tokens), _past(step)
        rows = slice(first, first + count)
        mask[rows, : past - own] = True
        if step.mask is None:
            mask[rows, past + first : past + first + count] = True
        else:
            mask[rows, past - own : past].copy_(step.mask[:, :own], non_blocking=True)
            mask[rows, past + first : past + first + count].copy_(step.mask[:, own:], non_blocking=True)
        first += count


def _past(step: Pass) -> int:
    """Older entries that a pass's mask speaks of."""
    return 0 if step.mask is None else step.mask.shape[1] - len(step.tokens)


def _starts(counts: Sequence[int]) -> list[int]:
    """The first row of each sequence, and the one behind the last."""
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    return starts


def _slots(caches: Sequence[PagedCache], counts: Sequence[int]) -> list[int]:
    """Where the entries of each row go in the pool."""
    return [
        cache.pages[at // PAGE] * PAGE + at % PAGE
        for cache, count in zip(caches, counts, strict=True)
        for at in range(cache.length, cache.length + count)
    ]
