"""The KV cache of the C pass: the same entries as `kv.KVCache`, lying in blocks of 32 tokens as C multiplies them.

Knows the layout of `kernels/native/attention.h` and nothing else about that pass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from remask.engine.models.kv import KVCache, allocate, fitting, rounded
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

    def snapshot(self, start: int = 0) -> Tensor:
        """A copy of the valid entries from `start` on, in the plain order: as `KVCache.snapshot`."""
        first = start // BLOCK
        d, blocks = self._dim, -(-self.length // BLOCK) - first
        head = self.entries.shape[:2]
        keys, values = self.entries[:, :, first : first + blocks].unbind(3)
        keys = keys.view(*head, blocks, 2, d // 2, 16, 2).transpose(4, 5)  # tokens before pairs of values
        values = values.view(*head, blocks, d // 16, 16, 16, 2).permute(0, 1, 2, 4, 6, 3, 5)  # tokens before values
        plain = torch.stack([part.reshape(*head, blocks * BLOCK, d) for part in (keys, values)])
        return plain[:, :, :, start - first * BLOCK : self.length - first * BLOCK, : self._shape.head_dim].contiguous()

    @torch.inference_mode()  # a cache that grew during a pass takes no other writing
    def restore(self, entries: Tensor, start: int = 0) -> None:
        """As `KVCache.restore`."""
        count = fitting(entries, self._shape, self.dtype)
        self.length = start
        self.reserve(count)
        first, begun = start // BLOCK, start % BLOCK  # of a block that is begun, what it holds is written again
        entries = torch.cat([self.snapshot(start - begun), entries], 3) if begun else entries
        d, blocks, head = self._dim, -(-(begun + count) // BLOCK), entries.shape[1:3]
        plain = torch.nn.functional.pad(entries, (0, d - self._shape.head_dim, 0, blocks * BLOCK - begun - count))
        keys = plain[0].view(*head, blocks, 2, 16, d // 2, 2).transpose(4, 5)
        values = plain[1].view(*head, blocks, 16, 2, d // 16, 16).permute(0, 1, 2, 5, 3, 6, 4)
        self.entries[:, :, first : first + blocks, 0] = keys.reshape(*head, blocks, BLOCK * d)
        self.entries[:, :, first : first + blocks, 1] = values.reshape(*head, blocks, BLOCK * d)
        self.length += count

    def _room(self, tokens: int) -> Tensor:
        s = self._shape
        sizes = (s.layers, s.kv_heads, rounded(tokens) // BLOCK, 2, BLOCK * self._dim)
        return allocate(sizes, torch.bfloat16, torch.device("cpu"), tokens).zero_()
