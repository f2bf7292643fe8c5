"""What references compute in: float64 where that is asked for, else float32 whatever comes in."""

from __future__ import annotations

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """`x` in the precision of a reference."""
    return x if x.dtype == torch.float64 else x.float()
