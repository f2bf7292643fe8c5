"""One int8 matrix for products with a single row, by the C pass's own kernel. Knows nothing of models."""

from __future__ import annotations

import torch
from torch import Tensor

from remask.engine.models.native import _Matrix, _packed, _product, native_library


class Int8Product:
    """Int8 rows [out, in] with a scale each [out], times one row of activations; one call at a time."""

    def __init__(self, rows: Tensor, scale: Tensor) -> None:
        library = native_library()
        assert library is not None, "ask native_library first"
        self._library = library
        self._kept = _packed(library, rows, scale)  # what C points into
        self._matrix = _Matrix(*(t.data_ptr() for t in self._kept), None, None, *rows.shape)
        self._scratch = torch.empty(library.remask_product_scratch(1, rows.shape[1]), dtype=torch.uint8)
        self._out = torch.empty(1, rows.shape[0])

    def __call__(self, row: Tensor) -> Tensor:
        """[in] float32 -> [out] float32, valid until the next call."""
        _product(self._library, self._matrix, 0.0, row.contiguous()[None], self._out, self._scratch)
        return self._out[0]
