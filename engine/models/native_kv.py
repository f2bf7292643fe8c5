"""The KV cache of the C pass: the same entries as `kv.KVCache`, lying in blocks of 32 tokens as C multiplies them.

Knows the layout of `kernels/native/attention.h` and nothing else about that pass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from remask.engine.models.kv import KVCache, allocate, rounded
from remask.engine.models.spec import Shape

BLOCK = 32  # tokens


class NativeCache(KVCache):
    """Keys and values of one sequence, bfloat16. Unwritten slots are zeros: what C multiplies must be finite.

    A block of one head holds keys [2 halves][pairs of values][16 tokens][2] and values [d / 16][16 pairs of
    tokens][16][2], d being head_dim padded to 32.
    """

    def __init__(self, shape: Shape) -> None:
        self.length = 0
        self._shape = shape
        self._dim = -(-shape.head_dim // 32) * 32
        self.entries = self._room(1)  # [layers, kv_heads, blocks, 2, 32 * d]

    @property
    def capacity(self) -> int:
        """Tokens that fit without growing."""
        return self.entries.shape[2] * BLOCK

    @property
    def dtype(self) -> torch.dtype:
        """What entries are held in."""
        return self.entries.dtype

    @property
    def nbytes(self) -> int:
        """Bytes held, valid or not."""
        return self.entries.nbytes

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Not how entries come in here (C writes them); raises TypeError."""
        raise TypeError("the C pass writes its own entries")

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` more. Raises ModelError where memory is short."""
        if self.length + tokens <= self.capacity:
            return
        grown = self._room(self.length + tokens)
        grown[:, :, : self.entries.shape[2]] = self.entries
        self.entries = grown

    def snapshot(self) -> Tensor:
        """A copy of the valid entries in the plain order: [2, layers, kv_heads, length, head_dim]."""
        d, blocks = self._dim, -(-self.length // BLOCK)
        head = self.entries.shape[:2]
        keys, values = self.entries[:, :, :blocks].unbind(3)
        keys = keys.view(*head, blocks, 2, d // 2, 16, 2).transpose(4, 5)  # tokens before pairs of values
        values = values.view(*head, blocks, d // 16, 16, 16, 2).permute(0, 1, 2, 4, 6, 3, 5)  # tokens before values
        plain = torch.stack([part.reshape(*head, blocks * BLOCK, d) for part in (keys, values)])
        return plain[:, :, :, : self.length, : self._shape.head_dim].contiguous()

    @torch.inference_mode()  # a cache that grew during a pass takes no other writing
    def restore(self, entries: Tensor) -> None:
        """Inverse of `snapshot`; raises ValueError where sizes or precision are another model's."""
        s, count = self._shape, entries.shape[3]
        expected = (2, s.layers, s.kv_heads, count, s.head_dim)
        if entries.shape != expected or entries.dtype != self.dtype:
            raise ValueError(f"KV entries {entries.dtype} {tuple(entries.shape)}, expected {expected}")
        self.length = 0
        self.reserve(count)
        d, blocks, head = self._dim, -(-count // BLOCK), expected[1:3]
        plain = torch.nn.functional.pad(entries, (0, d - s.head_dim, 0, blocks * BLOCK - count))
        keys = plain[0].view(*head, blocks, 2, 16, d // 2, 2).transpose(4, 5)
        values = plain[1].view(*head, blocks, 16, 2, d // 16, 16).permute(0, 1, 2, 5, 3, 6, 4)
        self.entries[:, :, :blocks, 0] = keys.reshape(*head, blocks, -1)
        self.entries[:, :, :blocks, 1] = values.reshape(*head, blocks, -1)
        self.length = count

    def _room(self, tokens: int) -> Tensor:
        s = self._shape
        sizes = (s.layers, s.kv_heads, rounded(tokens) // BLOCK, 2, BLOCK * self._dim)
        return allocate(sizes, torch.bfloat16, torch.device("cpu"), tokens).zero_()
