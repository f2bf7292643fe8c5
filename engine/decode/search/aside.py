"""Where the entries of a search's texts go when they leave memory: on disk, for as long as the search lasts.

Knows entries by number; knows no tokens, no texts and no cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol
from uuid import uuid4

from torch import Tensor

from remask.contract.errors import StorageError

WORTH_TOKENS = 64  # entries of fewer tokens are not put aside: reading them again costs less (docs/decoding.md)
LASTS_S = 3600.0  # what a search that was killed has left goes after this time


class Shelf(Protocol):
    """A place for tensors by name; every call may raise StorageError. See `engine.store.DiskStore`."""

    def put(self, name: str, tensors: Mapping[str, Tensor], lasts_s: float | None = None) -> None:
        """Keep tensors for so many seconds at most."""
        ...

    def get(self, name: str) -> dict[str, Tensor] | None:
        """What is kept under a name; None where nothing sound is."""
        ...

    def drop(self, name: str) -> None:
        """Forget what is kept under a name."""
        ...


class Aside:
    """The entries that one search has put aside.

    Without a shelf, or with one that refuses, nothing is kept: who asks has to read the tokens again.
    """

    def __init__(self, shelf: Shelf | None) -> None:
        self._shelf = shelf
        self._name = f"search:{uuid4()}"
        self._numbers: list[int] = []

    def put(self, entries: Tensor) -> int | None:
        """Put the entries of a text aside, [2, layers, kv_heads, tokens, head_dim]; None where they are not kept."""
        if self._shelf is None or entries.shape[3] < WORTH_TOKENS:
            return None
        number = len(self._numbers)
        try:
            self._shelf.put(self._named(number), {"kv": entries}, LASTS_S)
        except StorageError:
            return None
        self._numbers.append(number)
        return number

    def take(self, number: int) -> Tensor | None:
        """The entries of a number, on the CPU; None where nothing sound is there any more. They stay aside."""
        assert self._shelf is not None
        try:
            tensors = self._shelf.get(self._named(number))
        except StorageError:
            return None
        return None if tensors is None else tensors.get("kv")

    def clear(self) -> None:
        """Leave nothing of it on disk; what a disk refuses to delete goes when its time is up."""
        if self._shelf is not None:
            with suppress(StorageError):
                while self._numbers:
                    self._shelf.drop(self._named(self._numbers.pop()))

    def _named(self, number: int) -> str:
        return f"{self._name}:{number}"
