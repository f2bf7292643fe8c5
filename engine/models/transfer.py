"""Between the processor and a card, without waiting: what is sent is queued, what is brought over comes all at once.

A tensor that is made on a card from a Python list, or read one by one from there, makes the processor wait for all
that the card still has to do. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def sent(values: Sequence[int], device: torch.device, dtype: torch.dtype = torch.int64) -> Tensor:
    """Numbers as a tensor on `device`."""
    return onto(torch.tensor(values, dtype=dtype), device)


def onto(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the processor on `device`; a card is not waited for."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)  # pinned memory is kept until the copy is done


def picked_rows(tensor: Tensor, rows: Sequence[int]) -> Tensor:
    """Rows by their numbers; a view where they follow each other."""
    if rows and list(rows) == list(range(rows[0], rows[0] + len(rows))):
        return tensor[rows[0] : rows[0] + len(rows)]
    return tensor[sent(rows, tensor.device)]


def together(*tensors: Tensor) -> list[Tensor]:
    """The same tensors on the processor, by one transfer: float32 holds every token number that there is.

    int64 (below 2^24), bool and float32 come back as they are.
    """
    if all(one.device.type == "cpu" for one in tensors):
        return list(tensors)
    flat = torch.cat([one.float().flatten() for one in tensors]).cpu()
    parts = flat.split([one.numel() for one in tensors])
    return [part.view(one.shape).to(one.dtype) for part, one in zip(parts, tensors, strict=True)]
