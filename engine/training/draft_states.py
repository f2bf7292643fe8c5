"""What a draft head learns from: the states that the engine's own causal pass has behind every token of a corpus.

An example is read alone, so nothing is spent on padding and masks. Knows passes and packed rows; knows no head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from remask.engine.models.passes import Pass
from remask.engine.models.transformer import Transformer
from remask.engine.session import PREFILL_CHUNK
from remask.engine.training.batches import PREFIX, Ints
from remask.engine.training.corpus.store import NO_SEGMENT, SplitRows


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of N tokens, example behind example.

    tokens: [N] int64. places: [N] int64, of a token in its example. states: [N, width] float32, before the last norm.
    written: [N] bool, tokens of a prefix or a middle. best: [N] int64, what the model would write behind each token;
    empty where nobody asked.
    """

    tokens: Tensor
    places: Tensor
    states: Tensor
    written: Tensor
    best: Tensor


class States:
    """Reads examples of a split in an order that follows from the seed, epoch after epoch."""

    def __init__(self, split: SplitRows, transformer: Transformer, *, seed: int = 0, judged: bool = False) -> None:
        self._split, self._transformer, self._seed, self._judged = split, transformer, seed, judged
        self._cache = transformer.new_cache()

    def chunks(self, size: int, overlap: int) -> Iterator[Chunk]:
        """Chunks of `size` tokens, the last `overlap` of one being the first of the next; there is no end."""
        held: list[Chunk] = []
        for tokens, written in self._examples():
            held.append(self._read(tokens, written))
            while sum(len(c.tokens) for c in held) >= size:
                whole = _joined(held)
                yield _part(whole, slice(0, size))
                held = [_part(whole, slice(size - overlap, None))]

    def _examples(self) -> Iterator[tuple[Ints, Ints]]:
        epoch = 0
        while True:
            for row in np.random.default_rng((self._seed, epoch)).permutation(len(self._split.tokens)):
                segments = self._split.segments[row]
                for segment in np.unique(segments[segments != NO_SEGMENT]):
                    at = np.flatnonzero(segments == segment)
                    yield self._split.tokens[row][at].astype(np.int64), self._split.roles[row][at] >= PREFIX
            epoch += 1

    def _read(self, tokens: Ints, written: Ints) -> Chunk:
        device, parts = self._transformer.device, []
        self._cache.truncate(0)
        for at in range(0, len(tokens), PREFILL_CHUNK):
            step = Pass.causal(tokens[at : at + PREFILL_CHUNK].tolist(), at, device)
            parts.append(self._transformer.forward(step, self._cache))
            self._cache.advance(len(step.tokens))
        states = torch.cat(parts)
        best = self._transformer.logits(states).argmax(-1) if self._judged else torch.empty(0, dtype=torch.int64)
        return Chunk(
            torch.from_numpy(tokens).to(device),
            torch.arange(len(tokens), device=device),
            states.float().clone(),  # outside of inference mode, so that gradients may go through what is made of it
            torch.from_numpy(written).to(device),
            best.clone(),
        )


def _joined(chunks: list[Chunk]) -> Chunk:
    return Chunk(*(torch.cat([getattr(c, name) for c in chunks]) for name in Chunk.__slots__))


def _part(chunk: Chunk, where: slice) -> Chunk:
    return Chunk(*(getattr(chunk, name)[where] for name in Chunk.__slots__))
