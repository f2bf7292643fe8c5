"""The keys and values of tokens already read: one preallocated buffer that grows in steps and is cut, never copied.

Knows positions, not tokens: which text the entries stand for is the session's business.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from remask.contract.errors import ModelError
from remask.engine.models.spec import Shape

GROWTH = 256  # tokens; fresh memory is costly, so room is taken in steps and kept


class KVCache:
    """Keys and values of one sequence; `length` entries are valid, further slots are scratch for a canvas."""

    def __init__(self, shape: Shape, *, dtype: torch.dtype, device: torch.device, capacity: int = GROWTH) -> None:
        self.length = 0
        self._shape = shape
        sizes = (2, shape.layers, shape.kv_heads, rounded(capacity), shape.head_dim)
        self._buffer = allocate(sizes, dtype, device, capacity)

    @property
    def capacity(self) -> int:
        """Tokens that fit without growing."""
        return self._buffer.shape[3]

    @property
    def dtype(self) -> torch.dtype:
        """What entries are held in."""
        return self._buffer.dtype

    @property
    def nbytes(self) -> int:
        """Bytes held, valid or not."""
        return self._buffer.numel() * self._buffer.element_size()

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put the entries of T new tokens ([kv_heads, T, head_dim] each) behind the valid ones; they are not valid yet.

        Returns all keys and values up to the last new token: [kv_heads, length + T, head_dim] each.
        """
        end = self.length + keys.shape[1]
        assert end <= self.capacity, "reserve room before a pass"
        self._buffer[0, layer, :, self.length : end] = keys
        self._buffer[1, layer, :, self.length : end] = values
        return self._buffer[0, layer, :, :end], self._buffer[1, layer, :, :end]

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """All slots of one layer, valid or not, to be used in place: [kv_heads, capacity, head_dim] each."""
        return self._buffer[0, index], self._buffer[1, index]

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` more. Raises ModelError where memory is short; what is held stays."""
        needed = self.length + tokens
        if needed <= self.capacity:
            return
        sizes = (*self._buffer.shape[:3], rounded(needed), self._buffer.shape[4])
        grown = allocate(sizes, self.dtype, self._buffer.device, needed)
        grown[:, :, :, : self.length] = self._buffer[:, :, :, : self.length]
        self._buffer = grown

    def advance(self, tokens: int) -> None:
        """Declare the first `tokens` entries of the last pass valid."""
        assert 0 <= tokens <= self.capacity - self.length
        self.length += tokens

    def truncate(self, length: int) -> int:
        """Forget everything from position `length` on; returns how many entries are left."""
        assert 0 <= length <= self.length
        self.length = length
        return length

    def snapshot(self, start: int = 0) -> Tensor:
        """A copy of the valid entries from position `start` on: [2, layers, kv_heads, length - start, head_dim]."""
        return self._buffer[:, :, :, start : self.length].clone(memory_format=torch.contiguous_format)

    @torch.inference_mode()  # a cache that grew during a pass takes no other writing
    def restore(self, entries: Tensor, start: int = 0) -> None:
        """Inverse of `snapshot`: what was valid from `start` on is forgotten.

        Raises ValueError where sizes or precision are another model's.
        """
        count = fitting(entries, self._shape, self.dtype)
        self.length = start
        self.reserve(count)
        self._buffer[:, :, :, start : start + count] = entries
        self.length += count


def fitting(entries: Tensor, shape: Shape, dtype: torch.dtype) -> int:
    """How many tokens' entries these are. Raises ValueError where sizes or precision are another model's."""
    expected = (2, shape.layers, shape.kv_heads, *entries.shape[3:4], shape.head_dim)
    if entries.shape != expected or entries.dtype != dtype:
        raise ValueError(f"KV entries {entries.dtype} {tuple(entries.shape)}, expected {dtype} {expected}")
    return expected[3]


def rounded(tokens: int) -> int:
    """The room that is taken for so many tokens."""
    return -(-tokens // GROWTH) * GROWTH


def allocate(sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device, tokens: int) -> Tensor:
    """Fresh memory for the entries of `tokens`. Raises ModelError with the sizes where there is not enough."""
    try:
        return torch.empty(sizes, dtype=dtype, device=device)
    except RuntimeError:  # torch.OutOfMemoryError is one; the CPU allocator raises the bare class
        gigabytes = math.prod(sizes) * dtype.itemsize / 1e9
        raise ModelError(
            f"Reading {tokens} tokens needs {gigabytes:.2f} GB for keys and values, which {device} does not have free.",
            advice="Use a smaller model or a shorter context, or close what else uses the memory.",
        ) from None
