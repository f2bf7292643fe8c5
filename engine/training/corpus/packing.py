"""Packs examples of different lengths into rows of equal length, no example over two rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

CHUNK = 4_096  # examples packed together: enough to fill rows well, few enough to keep their random order


def pack(lengths: Sequence[int], row_tokens: int) -> list[list[int]]:
    """Rows as lists of example numbers, each with at most `row_tokens` tokens.

    Best fit, the longest first, in chunks of the given order. Raises ValueError for an example longer than a row.
    """
    if lengths and max(lengths) > row_tokens:
        raise ValueError(f"an example of {max(lengths)} tokens in rows of {row_tokens}")
    rows: list[list[int]] = []
    for start in range(0, len(lengths), CHUNK):
        chunk = range(start, min(len(lengths), start + CHUNK))
        first = len(rows)
        room = np.full(len(chunk), row_tokens, np.int64)  # as many rows as could be needed; unused ones stay full
        used = 0
        for number in sorted(chunk, key=lambda n: -lengths[n]):
            fitting = np.flatnonzero(room[:used] >= lengths[number])
            row = int(fitting[np.argmin(room[fitting])]) if len(fitting) else used
            if row == used:
                rows.append([])
                used += 1
            rows[first + row].append(number)
            room[row] -= lengths[number]
    return rows


def shuffled(count: int, seed: int) -> npt.NDArray[np.int64]:
    """The numbers 0 .. count - 1 in an order that only the seed decides."""
    return np.random.default_rng([seed, count]).permutation(count).astype(np.int64)
