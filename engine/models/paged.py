"""Keys and values of many sequences in one pool of pages: sequences that share a beginning share its pages.

A page is freed when nobody names it any more, and copied before it is written while another sequence still reads it.
The pool's memory stays where it is until it grows, so that captured passes (see `static_pass`) serve all sequences.
Knows positions, not tokens. Source: paged attention (Kwon et al. 2023), copy on write included.
"""

from __future__ import annotations

import weakref

import torch
from torch import Tensor

from remask.contract.errors import ModelError
from remask.engine.models.kv import KVCache, allocate, fitting
from remask.engine.models.spec import Shape
from remask.engine.models.transfer import sent

PAGE = 64  # tokens; a tile of keys
FIRST = 64  # pages that a pool starts with


class PagePool:
    """Memory for keys and values, in pages. `generation` rises when it moves."""

    def __init__(self, shape: Shape, *, dtype: torch.dtype, device: torch.device, pages: int = FIRST) -> None:
        self.shape = shape
        self.generation = 0
        sizes = (2, shape.layers, pages, PAGE, shape.kv_heads, shape.head_dim)
        self.buffer = allocate(sizes, dtype, device, pages * PAGE)
        self._free = list(range(pages))[::-1]  # the lowest is taken first
        self._users = [0] * pages

    @property
    def page_bytes(self) -> int:
        """Bytes of one page in all layers."""
        return self.buffer[:, :, 0].nbytes

    @property
    def free(self) -> int:
        """Pages that nobody uses."""
        return len(self._free)

    def take(self) -> int:
        """A page for one user. Raises ModelError where the pool is full and memory for a larger one is short."""
        if not self._free:
            self._grow()
        page = self._free.pop()
        self._users[page] = 1
        return page

    def share(self, pages: list[int]) -> None:
        """One user more of each."""
        for page in pages:
            self._users[page] += 1

    def release(self, pages: list[int]) -> None:
        """One user less of each."""
        for page in pages:
            self._users[page] -= 1
            if self._users[page] == 0:
                self._free.append(page)

    def own(self, page: int) -> int:
        """The page itself where it has one user, else a copy of it for one of them. Raises ModelError."""
        if self._users[page] == 1:
            return page
        copy = self.take()
        self.buffer[:, :, copy] = self.buffer[:, :, page]
        self.release([page])
        return copy

    def _grow(self) -> None:
        """To twice its pages, or as many more as there is memory for beside the old ones."""
        old = more = len(self._users)
        while True:
            sizes = (*self.buffer.shape[:2], old + more, *self.buffer.shape[3:])
            try:
                grown = allocate(sizes, self.buffer.dtype, self.buffer.device, (old + more) * PAGE)
                break
            except ModelError:
                if more == 1:
                    raise
                more //= 2
        grown[:, :, :old] = self.buffer
        self.buffer = grown
        self._free += range(old + more - 1, old - 1, -1)
        self._users += [0] * more
        self.generation += 1


class PagedCache(KVCache):
    """One sequence's pages of a pool; what stands in them up to `length` is valid."""

    def __init__(self, pool: PagePool) -> None:
        self.length = 0
        self.pool = pool
        self.pages: list[int] = []
        self._table = torch.zeros(0, dtype=torch.int32)
        self._table_of: list[int] = []
        weakref.finalize(self, pool.release, self.pages)  # the list itself: it changes in place

    @property
    def capacity(self) -> int:
        """Tokens that fit without another page."""
        return len(self.pages) * PAGE

    @property
    def dtype(self) -> torch.dtype:
        """What entries are held in."""
        return self.pool.buffer.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of its pages, those it shares included."""
        return len(self.pages) * self.pool.page_bytes

    def fork(self) -> PagedCache:
        """Another sequence with the same valid entries; nothing is copied until one of them writes."""
        other = PagedCache(self.pool)
        other.length = self.length
        other.pages += self.pages[: -(-self.length // PAGE)]
        self.pool.share(other.pages)
        return other

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """All slots of the pool in one layer, to be used in place: [slots, kv_heads, head_dim] each."""
        keys, values = self.pool.buffer[:, index].flatten(1, 2)
        return keys, values

    def page_table(self) -> Tensor:
        """Its pages in order: [pages] int32 on the pool's device, sent there when they change."""
        if self._table_of != self.pages or self._table.device != self.pool.buffer.device:
            self._table_of = list(self.pages)
            self._table = sent(self.pages, self.pool.buffer.device, torch.int32)
        return self._table

    def slots(self, first: int, count: int) -> Tensor:
        """Where `count` positions from `first` on lie in the pool: [count] int64 on its device."""
        places = [self.pages[at // PAGE] * PAGE + at % PAGE for at in range(first, first + count)]
        return sent(places, self.pool.buffer.device)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """As `KVCache.write`; what is returned is a copy."""
        count = keys.shape[1]
        assert self.length + count <= self.capacity, "reserve room before a pass"
        slots = self.slots(0, self.length + count)
        held = self.layer(layer)
        for part, new in zip(held, (keys, values), strict=True):
            part[slots[self.length :]] = new.transpose(0, 1)
        return held[0][slots].transpose(0, 1), held[1][slots].transpose(0, 1)

    @torch.inference_mode()
    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` more, in pages of its own. Raises ModelError where memory is short."""
        for index in range(self.length // PAGE, len(self.pages)):
            self.pages[index] = self.pool.own(self.pages[index])
        while self.capacity < self.length + tokens:
            self.pages.append(self.pool.take())

    def truncate(self, length: int) -> int:
        """Forget everything from position `length` on; returns how many entries are left."""
        assert 0 <= length <= self.length
        self.length = length
        kept = -(-length // PAGE)
        self.pool.release(self.pages[kept:])
        del self.pages[kept:]
        return length

    def snapshot(self, start: int = 0) -> Tensor:
        """A copy of the valid entries from position `start` on: [2, layers, kv_heads, length - start, head_dim]."""
        held = self.pool.buffer.flatten(2, 3)[:, :, self.slots(start, self.length - start)]
        return held.transpose(2, 3).contiguous()

    @torch.inference_mode()
    def restore(self, entries: Tensor, start: int = 0) -> None:
        """As `KVCache.restore`."""
        count = fitting(entries, self.pool.shape, self.dtype)
        self.truncate(start)
        self.reserve(count)
        slots, held = self.slots(start, count), self.pool.buffer.flatten(2, 3)
        held[:, :, slots] = entries.transpose(2, 3).to(held.device)
        self.length += count
