"""Low-rank updates of matrices, added while a checkpoint is read (LoRA, Hu et al. 2021). Knows no files, no names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK_ROWS = 512  # rows merged at a time: bounds the float32 copy


@dataclass(frozen=True, slots=True)
class LowRank:
    """What is added to a matrix [out, in]: `b` [out, rank] times `a` [rank, in], float32, any factor already in `b`."""

    a: Tensor
    b: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix it belongs to."""
        return self.b.shape[0], self.a.shape[1]


def merged_rows(
    stored: Tensor, scale: Tensor | None, updates: Sequence[LowRank], device: torch.device
) -> Iterator[tuple[slice, Tensor]]:
    """The rows of a matrix with its updates added, float32 on `device`, a chunk at a time.

    `stored` [out, in] is floating, or int8 that its `scale` [out] multiplies.
    """
    moved = [(u.a.to(device), u.b.to(device)) for u in updates]
    for at in range(0, stored.shape[0], CHUNK_ROWS):
        chunk = slice(at, at + CHUNK_ROWS)
        rows = stored[chunk].to(device, torch.float32, copy=True)
        if scale is not None:
            rows *= scale[chunk, None].to(device)
        for a, b in moved:
            rows.addmm_(b[chunk], a)
        yield chunk, rows
