"""The disk tier: a document's KV state outlives the process, so a reopened file starts warm.

Raw tensors in safetensors' own format with a checksum, in files with mode 0600 in a folder with mode 0700; never a
pickle. An entry that is damaged, or written by other weights, is dropped and counts as absent.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import diskcache
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from remask.contract.errors import StorageError
from remask.contract.places import cache_dir
from remask.engine.models.memory import is_shortage
from remask.engine.session import Session

DEFAULT_BUDGET_BYTES = 1024 * 1024 * 1024
DIGEST_BYTES = 32
ONE_BY_ONE = "least-recently-used, one by one"
"""Diskcache's own policy takes ten at a time: of entries as large as these, all that there are."""
diskcache.EVICTION_POLICY[ONE_BY_ONE] = diskcache.EVICTION_POLICY["least-recently-used"] | {
    "cull": "SELECT {fields} FROM Cache ORDER BY access_time LIMIT min(?, 1)"
}


class RawBytes(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Stores text keys and byte values as they are; refuses anything that would have to be pickled."""

    def store(self, value: Any, read: bool, key: Any = diskcache.UNKNOWN) -> Any:
        """Write a value; raises TypeError for anything but bytes."""
        if not isinstance(value, bytes):
            raise TypeError("only bytes go to the disk tier")
        stored = super().store(value, read, key)
        if stored[2] is not None:  # a file of its own, not a row
            os.chmod(os.path.join(self._directory, stored[2]), 0o600)
        return stored

    def _write(self, full_path: str, iterator: BytesIO, mode: str, encoding: str | None = None) -> Any:
        """All at once instead of line by line; of what a full disk refuses nothing is left."""
        try:
            return super()._write(full_path, [iterator.getbuffer()], mode, encoding)
        except OSError:
            with suppress(OSError):
                os.remove(full_path)
            raise

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        """Read a value back; a pickled one, which only a foreign hand can have put there, is not opened."""
        if mode == diskcache.core.MODE_PICKLE:
            return b""
        return super().fetch(mode, filename, value, read)


class DiskStore:
    """KV states by document, for the weights named by `fingerprint`. Raises StorageError where the disk refuses."""

    def __init__(self, fingerprint: str, folder: Path | None = None, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._fingerprint = fingerprint
        with _refusals():
            place = folder or cache_dir() / "kv"
            self._cache = diskcache.Cache(
                str(place), disk=RawBytes, size_limit=budget_bytes, eviction_policy=ONE_BY_ONE, cull_limit=0
            )
            place.chmod(0o700)
            for database in place.glob("cache.db*"):
                with suppress(FileNotFoundError):  # SQLite removes some of them
                    database.chmod(0o600)

    def save(self, document: str, session: Session) -> None:
        """Keep the session's valid entries, unless there is no memory for a copy of them."""
        held = copied(session)
        if held is not None:
            self.put(document, held)

    def restore(self, document: str, session: Session) -> bool:
        """Fill a session with what is kept, in place of what it holds; False where there is nothing sound.

        Raises ModelError where memory is short; the session is empty then.
        """
        tensors = self.get(document)
        if tensors is None:
            return False
        if not filled(session, tensors):
            self.drop(document)
            return False
        return True

    def put(self, name: str, tensors: Mapping[str, Tensor], lasts_s: float | None = None) -> None:
        """Keep some tensors under a name, for as long as there is room, or so many seconds at most."""
        payload = save({key: tensor.cpu() for key, tensor in tensors.items()})
        with _refusals():
            self._cache.set(self._key(name), hashlib.sha256(payload).digest() + payload, expire=lasts_s)
            self._cache.cull()

    def get(self, name: str) -> dict[str, Tensor] | None:
        """What was kept under a name, on the CPU; None where nothing sound is."""
        with _refusals():
            entry = self._cache.get(self._key(name))
        if entry is None:
            return None
        try:
            if not isinstance(entry, bytes):
                raise ValueError("not written by Remask")
            digest, payload = entry[:DIGEST_BYTES], entry[DIGEST_BYTES:]
            if hashlib.sha256(payload).digest() != digest:
                raise ValueError("checksum")
            return load(payload)
        except (ValueError, SafetensorError):
            self.drop(name)
            return None

    def drop(self, name: str) -> None:
        """Forget what was kept under a name, if there is anything."""
        with _refusals():
            self._cache.delete(self._key(name))

    def close(self) -> None:
        """Release the database."""
        self._cache.close()

    def _key(self, name: str) -> str:
        return hashlib.sha256(f"{self._fingerprint}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()


def copied(session: Session) -> dict[str, Tensor] | None:
    """The valid entries of a session, on the CPU, as `filled` takes them; None where memory is short for a copy."""
    try:
        return {"kv": session.cache.snapshot().cpu(), "tokens": torch.tensor(session.tokens, dtype=torch.int64)}
    except (RuntimeError, MemoryError) as error:
        if not is_shortage(error):
            raise
        return None


def filled(session: Session, tensors: Mapping[str, Tensor]) -> bool:
    """Fill a session with kept `kv` and `tokens`, in place of what it holds; False where they are another model's.

    Raises ModelError where memory is short; the session is empty then.
    """
    try:
        if tensors["tokens"].shape != tensors["kv"].shape[3:4]:
            raise ValueError("lengths differ")
        session.cut_to([])  # before the memory that it may share with others is asked for
        session.cache.restore(tensors["kv"])
        session.tokens = list(tensors["tokens"].tolist())
    except (ValueError, KeyError):
        return False
    return True


@contextmanager
def _refusals() -> Iterator[None]:
    """What the file system or SQLite says becomes one sentence."""
    try:
        yield
    except (
        OSError,
        sqlite3.Error,
        diskcache.Timeout,
        TypeError,
        ValueError,
    ) as error:  # the last two: a damaged database
        why = getattr(error, "strerror", None) or str(error)
        raise StorageError(
            f"The KV cache on disk cannot be used: {why}.",
            advice="Free some space, set REMASK_CACHE_DIR, or turn the cache off with --no-cache.",
        ) from None
