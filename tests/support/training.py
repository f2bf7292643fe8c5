"""A tiny corpus in memory and on disk, and a tiny network, for training tests."""

from __future__ import annotations

import numpy as np
import torch
from tiny import MASK, PREFIX, SHAPE, SUFFIX, random_weights

from remask.engine.training.batches import Batches
from remask.engine.training.corpus.store import NO_SEGMENT, SplitRows
from remask.engine.training.network import Network
from remask.engine.training.recipe import Recipe

END = 256
RECIPE = Recipe(rank=4, rows=2, warmup=2, block=4, canvases=4, causal_rows=40, lr=1e-2)


def split(rows: int = 6, width: int = 64, seed: int = 0) -> SplitRows:
    """Each row holds two examples, `[SUFFIX] ss [PREFIX] pppp mmm [END]` and the like, and padding."""
    rng = np.random.default_rng(seed)
    tokens = np.zeros((rows, width), np.int32)
    roles = np.zeros((rows, width), np.uint8)
    segments = np.full((rows, width), NO_SEGMENT, np.uint16)
    for row in range(rows):
        at = 0
        for segment in range(2):
            suffix, prefix, middle = (int(rng.integers(2, 8)) for _ in range(3))
            text = rng.integers(97, 105, suffix + prefix + middle)
            parts = [SUFFIX, *text[:suffix], PREFIX, *text[suffix : suffix + prefix], *text[suffix + prefix :], END]
            stop = at + len(parts)
            tokens[row, at:stop] = parts
            roles[row, at:stop] = [1] * (suffix + 1) + [2] * (prefix + 1) + [3] * (middle + 1)
            segments[row, at:stop] = segment
            at = stop
    return SplitRows(tokens, roles, segments)


def network(rank: int = 4, dtype: torch.dtype = torch.float32, seed: int = 0) -> Network:
    return Network(SHAPE, random_weights(seed=seed), rank=rank, dtype=dtype)


def fixed_network(seed: int = 0) -> Network:
    return Network.fixed(SHAPE, random_weights(seed=seed), dtype=torch.float32)


def batches(recipe: Recipe = RECIPE, rows: int = 6) -> Batches:
    return Batches(split(rows), recipe, MASK)
