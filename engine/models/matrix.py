"""A matrix of weights: floats, or 8-bit rows with a scale each, and what a pass does with one.

Knows torch's operations only; a kernel for 8-bit rows is `kernels.scaled_product`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

FP8 = torch.float8_e4m3fn
EIGHT_BITS = frozenset({torch.int8, FP8})
LARGEST = {torch.int8: 127, FP8: 448}  # what the largest value of a row becomes


class Rows(NamedTuple):
    """A matrix [out, in]: `values` in int8 or float8 (e4m3), times `scale` [out] float32."""

    values: Tensor
    scale: Tensor


Matrix = Tensor | Rows


def matrix_of(weights: Mapping[str, Tensor], name: str) -> Matrix:
    """The matrix of that name, with its scales where it has them, as `read_weights` gives it."""
    scale = weights.get(f"{name}_scale")
    return weights[name] if scale is None else Rows(weights[name], scale)


def values_of(matrix: Matrix) -> Tensor:
    """What its values are held in: [out, in]."""
    return matrix.values if isinstance(matrix, Rows) else matrix


def product(x: Tensor, matrix: Matrix, bias: Tensor | None = None) -> Tensor:
    """X [T, in] times the matrix's transpose, plus the bias: [T, out] in x's dtype.

    8-bit values are exact in 16 bits, so that they are widened before, and scaled after the product.
    """
    if not isinstance(matrix, Rows):
        return F.linear(x, matrix, bias)
    out = F.linear(x, matrix.values.to(x.dtype)).mul_(matrix.scale)
    return out if bias is None else out.add_(bias)


def picked(matrix: Matrix, index: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows by their numbers [...]: [..., in] in `dtype`."""
    if not isinstance(matrix, Rows):
        return matrix[index].to(dtype)
    bytes_ = matrix.values.view(torch.int8)[index]  # float8 tensors cannot be indexed everywhere
    values = bytes_.view(matrix.values.dtype).float()
    return (values * matrix.scale[index][..., None]).to(dtype)


def below(*parts: Matrix) -> Matrix:
    """Matrices below each other; see `fused`."""
    scales = [part.scale for part in parts if isinstance(part, Rows)]
    values = fused(*(values_of(part) for part in parts))
    return Rows(values, fused(*scales)) if scales else values


def fused(*parts: Tensor) -> Tensor:
    """Tensors below each other; no copy where they already lie so in memory, as `read_weights` lays them."""
    first, end = parts[0], parts[0].storage_offset()
    for part in parts:
        same = part.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
        if not same or not part.is_contiguous() or part.storage_offset() != end:
            return torch.cat(parts)
        end += part.numel()
    return first.as_strided((sum(len(part) for part in parts), *first.shape[1:]), first.stride())
