"""The keys and values of tokens already read: one preallocated buffer that grows in steps and is cut, never copied.

Knows positions, not tokens: which text the entries stand for is the session's business.
"""

from __future__ import annotations

import torch
from torch import Tensor

from remask.engine.models.spec import Shape

GROWTH = 256  # tokens; fresh memory is costly, so room is taken in steps and kept


class KVCache:
    """Keys and values of one sequence; `length` entries are valid, further slots are scratch for a canvas."""

    def __init__(self, shape: Shape, *, dtype: torch.dtype, device: torch.device, capacity: int = GROWTH) -> None:
        self.length = 0
        self._shape = shape
        self._buffer = torch.empty(
            (2, shape.layers, shape.kv_heads, _rounded(capacity), shape.head_dim), dtype=dtype, device=device
        )

    @property
    def capacity(self) -> int:
        """Tokens that fit without growing."""
        return self._buffer.shape[3]

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

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` more."""
        needed = self.length + tokens
        if needed <= self.capacity:
            return
        grown = self._buffer.new_empty((*self._buffer.shape[:3], _rounded(needed), self._buffer.shape[4]))
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

    def snapshot(self) -> Tensor:
        """A copy of the valid entries: [2, layers, kv_heads, length, head_dim]."""
        return self._buffer[:, :, :, : self.length].contiguous()

    def restore(self, entries: Tensor) -> None:
        """Inverse of `snapshot`; raises ValueError where sizes or precision are another model's."""
        expected = (2, self._shape.layers, self._shape.kv_heads, entries.shape[3], self._shape.head_dim)
        if entries.shape != expected or entries.dtype != self._buffer.dtype:
            raise ValueError(f"KV entries {entries.dtype} {tuple(entries.shape)}, expected {expected}")
        self.length = 0
        self.reserve(entries.shape[3])
        self._buffer[:, :, :, : entries.shape[3]] = entries
        self.length = entries.shape[3]


def _rounded(tokens: int) -> int:
    return -(-tokens // GROWTH) * GROWTH
