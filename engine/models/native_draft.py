"""A draft head's guesses in one call of the C pass's library. Knows the layout of `kernels/native/draft.h`; no text."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_float, c_int32, c_int64, c_void_p

import torch
from torch import Tensor

from remask.engine.models.checkpoint import quantise
from remask.engine.models.native import _Matrix, _packed, native_library

CHOICES = 3  # tokens named at each place


class _Head(ctypes.Structure):
    _fields_ = (
        *((name, _Matrix) for name in ("parts", "output", "listed")),
        *((name, c_void_p) for name in ("embedding", "embedding_scale", "tokens")),
        *((name, c_int32) for name in ("width", "inner")),
    )


class NativeDraft:
    """A head over int8 rows; one guess at a time.

    tensors: the head's, float32. embedding, embedding_scale: the model's, int8 [vocab, width] and [vocab]. rows, scale:
    the short list's of its output matrix.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], embedding: Tensor, embedding_scale: Tensor, rows: Tensor, scale: Tensor
    ) -> None:
        library = native_library()
        assert library is not None, "ask native_library first"
        self._library = library
        self._kept: list[Tensor] = [embedding, embedding_scale]  # what C points into
        width, inner = tensors["output"].shape
        parts = torch.cat([tensors["state"], tensors["input"]], dim=1)
        self._head = _Head(
            self._matrix(*quantise(parts)),
            self._matrix(*quantise(tensors["output"])),
            self._matrix(rows, scale, tensors["norm"].float().contiguous()),
            embedding.data_ptr(),
            embedding_scale.data_ptr(),
            self._pointer(tensors["tokens"].contiguous()),
            width,
            inner,
        )
        size = library.remask_draft_scratch(ctypes.byref(self._head))
        self._scratch = torch.empty(size, dtype=torch.uint8)

    def __call__(self, hidden: Tensor, token: int, size: int, sure: float) -> tuple[list[list[int]], list[list[float]]]:
        """The best tokens and their chances at up to `size` places behind `token`; see `DraftHead.guess`."""
        hidden = hidden.float().contiguous()
        tokens, chances = (c_int64 * (size * CHOICES))(), (c_float * (size * CHOICES))()
        count = self._library.remask_draft(
            ctypes.byref(self._head),
            c_void_p(hidden.data_ptr()),
            c_int64(token),
            size,
            c_float(sure),
            torch.get_num_threads(),
            c_void_p(self._scratch.data_ptr()),
            tokens,
            chances,
        )
        places = range(0, count * CHOICES, CHOICES)
        return [tokens[at : at + CHOICES] for at in places], [chances[at : at + CHOICES] for at in places]

    def _matrix(self, rows: Tensor, scale: Tensor, norm: Tensor | None = None) -> _Matrix:
        packed = (self._pointer(tensor) for tensor in _packed(self._library, rows, scale))
        return _Matrix(*packed, None, None if norm is None else self._pointer(norm), *rows.shape)

    def _pointer(self, tensor: Tensor) -> int:
        self._kept.append(tensor)
        return tensor.data_ptr()
