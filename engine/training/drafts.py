"""Drafts with the model's own faults, and what the verifying pass sees of them: what the corrector head learns from.

Canvases are filled by the model (greedily, by sampling, or with part of the truth in view) or hold the truth with
planted errors. Each is read causally behind its own clean context, as the verifying pass reads it; beside them, tokens
of untouched code. A token is wrong where it differs from the truth at its place. One-pass drafts count up to their
first wrong token: verifying cuts them there, and one that is only shifted would be wrong all the way. Knows no head.

Shapes: R rows, N tokens a clean row, C canvases of B tokens a row, K taps, T tokens scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from remask.engine.judge.corrector import normalise, signs_of
from remask.engine.models.spec import ModelSpec
from remask.engine.training.batches import MIDDLE, PREFIX, Batch, Batches, Bools, Ints, rows_of, visible
from remask.engine.training.corpus.store import SplitRows
from remask.engine.training.network import Network
from remask.engine.training.objective import PIECE, read
from remask.engine.training.recipe import Recipe


class Kind(IntEnum):
    """Where a token comes from."""

    CLEAN = 0  # untouched code
    GREEDY = 1  # the model's best guess on a fully masked canvas
    SAMPLED = 2  # a draw from it
    PARTIAL = 3  # its best guess with part of the truth in view, as late in a canvas's life
    PLANTED = 4  # the truth, some tokens replaced by others of the same row


DRAFTED = (Kind.GREEDY, Kind.SAMPLED, Kind.PARTIAL)
ONE_PASS = (Kind.GREEDY, Kind.SAMPLED)
FULL = (Kind.GREEDY, Kind.PLANTED, Kind.SAMPLED, Kind.PLANTED, Kind.GREEDY, Kind.PLANTED)  # fully masked ones, in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOptions:
    """rows a batch, canvases of `block` tokens a row (even), clean tokens scored a row.

    planted: share of a planted canvas's tokens that are replaced. temperature: of the sampled drafts.
    """

    seed: int = 0
    rows: int = 2
    block: int = 8
    canvases: int = 36
    clean: int = 128
    planted: float = 0.12
    temperature: float = 0.9

    def recipe(self) -> Recipe:
        """Batches with these canvases: two thirds fully masked, nothing replaced, nothing scored causally."""
        return Recipe(
            seed=self.seed,
            rows=self.rows,
            block=self.block,
            canvases=self.canvases,
            full=2 / 3,
            wrong=0.0,
            causal_rows=1,
        )


@dataclass(frozen=True, slots=True)
class Labelled:
    """Scored tokens: states [T, K, width] float16, normalised; signs [T, 4] float32; wrong [T] bool; kind [T] uint8."""

    states: Tensor
    signs: Tensor
    wrong: Bools
    kind: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Canvases:
    """anchors [R, C] in the clean rows; truth, tokens and scored (bool) [R, C, B]; kinds [C]."""

    anchors: Ints
    truth: Ints
    tokens: Ints
    scored: Bools
    kinds: npt.NDArray[np.uint8]


class Drafts:
    """Makes labelled tokens from a split with a frozen network; step by step the same ones for the same seed."""

    def __init__(
        self, split: SplitRows, network: Network, spec: ModelSpec, taps: Sequence[int], options: DraftOptions
    ) -> None:
        self._split, self._network, self._taps, self._options = split, network, tuple(taps), options
        self._recipe = options.recipe()
        self._batches = Batches(split, self._recipe, spec.mask_id)
        self._mask_id, self._ends = spec.mask_id, np.array(spec.end_ids)
        self._marks = np.array([spec.mask_id, *spec.end_ids, spec.prefix_id, spec.suffix_id])

    @torch.no_grad()
    def labelled(self, step: int) -> Labelled:
        """The tokens of one batch."""
        batch = self._batches.batch(step)
        picked = rows_of(self._split, self._recipe, step, 0)
        rng = np.random.default_rng((self._options.seed, step, 2))
        canvases = self.draft(batch, picked, rng, step)
        return self._read(batch, picked, canvases, rng)

    def draft(self, batch: Batch, picked: Ints, rng: np.random.Generator, step: int) -> Canvases:
        """Fill a batch's canvases. What lies behind the example's end or the draft's is not scored."""
        o = self._options
        shape = (len(picked), o.canvases, o.block)
        segments = self._split.segments[picked].astype(np.int64)
        width = segments.shape[1]
        size = batch.tokens.shape[1]
        anchors = batch.teacher_rows.reshape(shape)[:, :, 0] - np.arange(len(picked))[:, None] * size
        at = anchors[:, :, None] + 1 + np.arange(o.block)
        row = np.arange(len(picked))[:, None, None]
        own = segments[row, np.minimum(at, width - 1)] == segments[row, anchors[:, :, None]]
        inside: Bools = (at < width) & own
        truth = batch.canvas_targets.reshape(shape)
        kinds = self._kinds()
        tokens = np.where((kinds == Kind.PLANTED)[:, None], truth, self._guess(batch, shape, kinds, step))
        planted = (rng.random(shape) < o.planted) & (kinds == Kind.PLANTED)[:, None]
        tokens = np.where(planted, self._others(picked, shape, rng), tokens)
        ends = np.isin(tokens, self._ends)
        ends |= (tokens != truth) & np.isin(kinds, ONE_PASS)[:, None]
        before: Ints = np.cumsum(ends, axis=2) - ends
        return Canvases(anchors, truth, tokens, inside & (before == 0), kinds)

    def _kinds(self) -> npt.NDArray[np.uint8]:
        """[C]: the fully masked canvases come first."""
        count = self._options.canvases
        full = 2 * round(self._recipe.full * (count // 2))
        kinds = [FULL[c % len(FULL)] if c < full else Kind.PARTIAL for c in range(count)]
        return np.array(kinds, dtype=np.uint8)

    def _guess(self, batch: Batch, shape: tuple[int, ...], kinds: npt.NDArray[np.uint8], step: int) -> Ints:
        """[R, C, B]: the model's tokens behind each canvas row, never the mask; what was in view stays."""
        hidden, _ = read(self._network, batch)
        rows = torch.from_numpy(batch.canvas_rows).to(hidden.device)
        generator = torch.Generator(hidden.device).manual_seed(self._options.seed * 1_000_003 + step)
        best, drawn = [], []
        for piece in rows.split(PIECE):
            logits = self._network.logits(hidden[piece]).float()
            logits[:, self._mask_id] = -torch.inf
            best.append(logits.argmax(-1))
            chances = (logits / self._options.temperature).softmax(-1)
            drawn.append(torch.multinomial(chances, 1, generator=generator)[:, 0])
        guessed, sampled = (torch.cat(t).cpu().numpy().reshape(shape) for t in (best, drawn))
        guessed = np.where((kinds == Kind.SAMPLED)[:, None], sampled, guessed)
        inputs = batch.tokens[:, -shape[1] * shape[2] :].reshape(shape)
        following = np.concatenate([inputs[:, :, 1:], np.full_like(inputs[:, :, :1], self._mask_id)], axis=2)
        return np.where(following == self._mask_id, guessed, following)

    def _others(self, picked: Ints, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        """[R, C, B]: tokens drawn from the row's own code."""
        tokens = self._split.tokens[picked].astype(np.int64)
        code = self._is_code(picked, tokens)
        pools = [t[c] if c.any() else t for t, c in zip(tokens, code, strict=True)]
        return np.stack([pool[rng.integers(0, len(pool), shape[1:])] for pool in pools])

    def _is_code(self, picked: Ints, tokens: Ints) -> Bools:
        roles = self._split.roles[picked]
        code: Bools = ((roles == PREFIX) | (roles == MIDDLE)) & ~np.isin(tokens, self._marks)
        return code

    def _clean(self, picked: Ints, rng: np.random.Generator) -> tuple[Ints, Bools]:
        """Places [R, clean] of untouched code in the rows, and whether they count (a row may hold none)."""
        tokens = self._split.tokens[picked].astype(np.int64)
        segments = self._split.segments[picked]
        usable = self._is_code(picked, tokens)
        usable[:, 0] = False
        usable[:, 1:] &= segments[:, 1:] == segments[:, :-1]
        places = np.ones((len(picked), self._options.clean), dtype=np.int64)
        counts = np.zeros_like(places, dtype=np.bool_)
        for number, row in enumerate(usable):
            found = rng.permutation(np.flatnonzero(row))[: self._options.clean]
            places[number, : len(found)], counts[number, : len(found)] = found, True
        return places, counts

    def _read(self, batch: Batch, picked: Ints, canvases: Canvases, rng: np.random.Generator) -> Labelled:
        """Read clean rows and drafts causally in one pass; shapes stay the same from batch to batch."""
        count, (width, reach) = len(picked), (self._split.tokens.shape[1], self._options.block + 1)
        reading = self._reading(batch, picked, canvases)
        hidden, tapped = read(self._network, reading, self._taps)
        size = reading.tokens.shape[1]
        offsets = np.arange(count)[:, None] * size
        places, counts = self._clean(picked, rng)
        behind_anchor = np.arange(size - width).reshape(-1, reach)[:, 1:].reshape(-1)
        own = np.concatenate([(offsets + places).reshape(-1), (offsets + width + behind_anchor).reshape(-1)])
        wrong = np.concatenate([np.zeros(places.size, np.bool_), (canvases.tokens != canvases.truth).reshape(-1)])
        scored = np.concatenate([counts.reshape(-1), canvases.scored.reshape(-1)])
        drafted = np.broadcast_to(canvases.kinds[:, None], canvases.tokens.shape)
        kind = np.concatenate([np.full(places.size, Kind.CLEAN, np.uint8), drafted.reshape(-1)])
        rows = torch.from_numpy(own).to(hidden.device)
        tokens = torch.from_numpy(reading.tokens).to(hidden.device).flatten()[rows]
        states = torch.stack([normalise(t[rows]).half() for t in tapped], dim=1)
        logits = (self._network.logits(hidden[piece - 1]) for piece in rows.split(PIECE))
        signs = torch.cat([signs_of(s, t) for s, t in zip(logits, tokens.split(PIECE), strict=True)])
        keep = torch.from_numpy(np.flatnonzero(scored))
        return Labelled(states.cpu()[keep], signs.cpu()[keep], wrong[scored], kind[scored])

    def _reading(self, batch: Batch, picked: Ints, canvases: Canvases) -> Batch:
        """The clean rows with drafts behind their anchors instead of canvases, every draft read from the left."""
        width, reach = self._split.tokens.shape[1], self._options.block + 1
        row = np.arange(len(picked))[:, None]
        anchors = canvases.anchors
        drafts = np.concatenate([batch.tokens[row, anchors][:, :, None], canvases.tokens], axis=2)
        places = batch.positions[row, anchors][:, :, None] + np.arange(reach)
        segments = self._split.segments[picked].astype(np.int64)
        seen = np.stack([visible(s, a, reach) for s, a in zip(segments, anchors, strict=True)])
        seen[:, width:, width:] &= np.tril(np.ones((seen.shape[1] - width,) * 2, dtype=np.bool_))
        return replace(
            batch,
            tokens=np.concatenate([batch.tokens[:, :width], drafts.reshape(len(picked), -1)], axis=1),
            positions=np.concatenate([batch.positions[:, :width], places.reshape(len(picked), -1)], axis=1),
            visible=seen,
        )
