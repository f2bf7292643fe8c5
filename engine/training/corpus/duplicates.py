"""Exact and near copies: MinHash over hashed lines, candidates by banding, decided by the true Jaccard index.

Source of the method: A. Z. Broder, "On the resemblance and containment of documents" (1997). Knows texts only.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

HASHES = 64
BANDS = 16  # of 4 rows: a pair with Jaccard 0.8 is found with probability 0.9998
NEAR = 0.75
MIN_LINE = 6
PRIME = np.uint64(4_294_967_311)

Lines = npt.NDArray[np.uint64]


class Duplicates:
    """Remembers what it has seen; `kind_of` says what a new text is."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self._factors = rng.integers(1, 2**31, HASHES, dtype=np.uint64)[:, None]
        self._shifts = rng.integers(0, 2**31, HASHES, dtype=np.uint64)[:, None]
        self._exact: set[bytes] = set()
        self._bands: dict[bytes, list[int]] = defaultdict(list)
        self._kept: list[Lines] = []

    def kind_of(self, text: str) -> str | None:
        """Whether it is an "exact copy" or "near copy" of an earlier text; None for a new text, which is remembered."""
        lines = hashed_lines(text)
        key = lines.tobytes()
        if key in self._exact:
            return "exact copy"
        if not len(lines):
            return None
        bands = self._banded(lines)
        candidates = {i for band in bands for i in self._bands.get(band, ())}
        if any(jaccard(lines, self._kept[i]) >= NEAR for i in candidates):
            return "near copy"
        self._exact.add(key)
        for band in bands:
            self._bands[band].append(len(self._kept))
        self._kept.append(lines)
        return None

    def _banded(self, lines: Lines) -> list[bytes]:
        signature = ((self._factors * lines + self._shifts) % PRIME).min(axis=1)
        rows = HASHES // BANDS
        return [bytes([b]) + signature[b * rows : (b + 1) * rows].tobytes() for b in range(BANDS)]


def hashed_lines(text: str) -> Lines:
    """The distinct lines of a text, stripped and hashed, sorted: uint64 [n]. Short lines say nothing."""
    stripped: Sequence[bytes] = [
        s for line in text.encode("utf-8", "replace").split(b"\n") if len(s := line.strip()) >= MIN_LINE
    ]
    return np.unique(np.fromiter((zlib.crc32(s) for s in stripped), dtype=np.uint64, count=len(stripped)))


def jaccard(a: Lines, b: Lines) -> float:
    """Shared members over all members of two sorted sets."""
    if min(len(a), len(b)) < NEAR * max(len(a), len(b)):
        return 0.0
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
