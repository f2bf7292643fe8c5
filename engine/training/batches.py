"""Packed rows become training batches of constant shape: clean rows, canvases behind them, and what is scored.

Everything follows from the recipe's seed and the step's number, so a resumed run reads what an unbroken one would
have. Pure numpy: knows no model.

Shapes: R rows, N tokens a clean row, C canvases of B positions a row, S = N + C * B, K causal rows scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from remask.engine.training.corpus.store import NO_SEGMENT, SplitRows
from remask.engine.training.recipe import Recipe

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

PREFIX, MIDDLE = 2, 3  # roles in a packed row
LOWEST_RATE, HIGHEST_RATE = 0.15, 0.95  # of masking in a partly masked canvas (clipped noise, Stable-DiffCoder)
IN_MIDDLE = 0.7  # share of the canvases that start in a middle, where the engine needs them


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch.

    tokens, positions: [R, S]. visible: [R, S, S], row sees column. Scored causally: `rows` [K] into the flat R * S,
    their `targets` and `weights`. Scored in canvases: `canvas_rows` [R * C * B], with targets and weights, and
    `teacher_rows`, the clean rows that predict the same tokens causally. Weight 0: not scored.
    """

    tokens: Ints
    positions: Ints
    visible: Bools
    rows: Ints
    targets: Ints
    weights: Floats
    canvas_rows: Ints
    canvas_targets: Ints
    canvas_weights: Floats
    teacher_rows: Ints


def rows_of(split: SplitRows, recipe: Recipe, step: int, micro: int) -> Ints:
    """Which packed rows a micro-batch takes: a new permutation an epoch, every row once in it."""
    total = len(split.tokens)
    first = (step * recipe.accumulate + micro) * recipe.rows
    wanted = np.arange(first, first + recipe.rows)
    epochs, places = divmod(wanted, total)
    orders = {int(e): np.random.default_rng((recipe.seed, int(e))).permutation(total) for e in set(epochs.tolist())}
    return np.array([orders[int(e)][p] for e, p in zip(epochs, places, strict=True)])


class Batches:
    """Makes the micro-batches of a split."""

    def __init__(self, split: SplitRows, recipe: Recipe, mask_id: int) -> None:
        self._split, self._recipe, self._mask_id = split, recipe, mask_id

    def batch(self, step: int, micro: int = 0) -> Batch:
        """The micro-batch number `micro` of a step."""
        recipe = self._recipe
        picked = rows_of(self._split, recipe, step, micro)
        rng = np.random.default_rng((recipe.seed, step, micro, 1))
        tokens = self._split.tokens[picked].astype(np.int64)
        roles, segments = self._split.roles[picked], self._split.segments[picked].astype(np.int64)
        positions = _positions(segments)
        canvases = [self._canvases(rng, *row) for row in zip(tokens, roles, segments, strict=True)]
        anchors = np.stack([a for a, _, _, _ in canvases])  # [R, C]
        return self._assemble(rng, tokens, roles, segments, positions, anchors, canvases)

    def _assemble(
        self,
        rng: np.random.Generator,
        tokens: Ints,
        roles: npt.NDArray[np.uint8],
        segments: Ints,
        positions: Ints,
        anchors: Ints,
        canvases: list[tuple[Ints, Ints, Ints, Floats]],
    ) -> Batch:
        recipe, (count, width) = self._recipe, tokens.shape
        size = width + recipe.canvases * recipe.block
        steps = np.arange(recipe.block)
        inputs = np.stack([i for _, i, _, _ in canvases]).reshape(count, -1)
        starts = np.take_along_axis(positions, anchors, 1)  # [R, C]
        canvas_positions = (starts[:, :, None] + steps).reshape(count, -1)
        offsets = np.arange(count)[:, None] * size
        causal = _causal_rows(rng, tokens, roles, segments, recipe)
        return Batch(
            tokens=np.concatenate([tokens, inputs], 1),
            positions=np.concatenate([positions, canvas_positions], 1),
            visible=np.stack([visible(s, a, recipe.block) for s, a in zip(segments, anchors, strict=True)]),
            rows=causal[0] // width * size + causal[0] % width,
            targets=causal[1],
            weights=causal[2],
            canvas_rows=(offsets + np.arange(width, size)).reshape(-1),
            canvas_targets=np.stack([t for _, _, t, _ in canvases]).reshape(-1),
            canvas_weights=np.stack([w for _, _, _, w in canvases]).reshape(-1),
            teacher_rows=(offsets + np.minimum(anchors[:, :, None] + steps, width - 1).reshape(count, -1)).reshape(-1),
        )

    def _canvases(
        self, rng: np.random.Generator, tokens: Ints, roles: npt.NDArray[np.uint8], segments: Ints
    ) -> tuple[Ints, Ints, Ints, Floats]:
        """Anchors [C], inputs, targets and weights [C, B] of one row's canvases, a pair at each of C / 2 places."""
        recipe = self._recipe
        pairs = recipe.canvases // 2
        places = _anchors(rng, roles, segments, pairs)
        full = np.arange(pairs) < round(recipe.full * pairs)
        # A fully masked pair would be the same canvas twice: its second half stands elsewhere.
        others = np.where(full, _anchors(rng, roles, segments, pairs), places)
        anchors = np.stack([places, others], 1).reshape(-1)
        rate = rng.uniform(LOWEST_RATE, HIGHEST_RATE, (pairs, 1))
        hidden = rng.random((pairs, recipe.block)) < rate
        masked = np.stack([hidden | full[:, None], ~hidden | full[:, None]], 1).reshape(-1, recipe.block)
        return (anchors, *self._fill(rng, tokens, segments, anchors, masked))

    def _fill(
        self, rng: np.random.Generator, tokens: Ints, segments: Ints, anchors: Ints, masked: Bools
    ) -> tuple[Ints, Ints, Floats]:
        """Inputs, targets and weights [C, B]: row i reads token anchor + i and predicts the one behind it."""
        recipe, last = self._recipe, len(tokens) - 1
        at = anchors[:, None] + np.arange(recipe.block)
        inside = (at <= last) & (segments[np.minimum(at, last)] == segments[anchors][:, None])
        follows = (at < last) & (segments[np.minimum(at + 1, last)] == segments[anchors][:, None])
        masked = masked.copy()
        masked[:, 0] = False  # the last known token
        wrong = (rng.random(masked.shape) < recipe.wrong) & ~masked & inside
        wrong[:, 0] = False
        drawn = tokens[rng.integers(0, len(tokens), masked.shape)]
        inputs = np.where(wrong, drawn, tokens[np.minimum(at, last)])
        inputs = np.where(masked | ~inside, self._mask_id, inputs)
        scored = np.ones_like(masked)
        scored[:, :-1] = masked[:, 1:] | wrong[:, 1:]  # a visible right token has nothing to learn
        weights = np.where(scored & follows, np.exp(-np.arange(recipe.block) / recipe.reach), 0.0)
        return inputs, tokens[np.minimum(at + 1, last)], weights.astype(np.float32)


def visible(segments: Ints, anchors: Ints, block: int) -> Bools:
    """[S, S]: a clean token sees its own example up to itself; a canvas sees its example before its anchor, and itself.

    The anchor's clean row is hidden from the canvas, whose first position is the same token: so the engine reads.
    """
    width, canvases = len(segments), len(anchors)
    place = np.arange(width)
    own = (segments[:, None] == segments[None, :]) & (segments[:, None] != NO_SEGMENT)
    clean = own & (place[:, None] >= place[None, :])
    clean[place, place] = True  # a row that sees nothing has no softmax
    before = (segments[anchors][:, None] == segments[None, :]) & (place[None, :] < anchors[:, None])  # [C, N]
    number = np.repeat(np.arange(canvases), block)
    result = np.zeros((width + len(number),) * 2, dtype=np.bool_)
    result[:width, :width] = clean
    result[width:, :width] = before[number]
    result[width:, width:] = number[:, None] == number[None, :]
    return result


def _positions(segments: Ints) -> Ints:
    """[R, N]: the place of each token in its example."""
    place = np.arange(segments.shape[1])
    starts = np.ones_like(segments, dtype=np.bool_)
    starts[:, 1:] = segments[:, 1:] != segments[:, :-1]
    return place - np.maximum.accumulate(np.where(starts, place, 0), axis=1)


def _anchors(rng: np.random.Generator, roles: npt.NDArray[np.uint8], segments: Ints, count: int) -> Ints:
    """Last known tokens of canvases: mostly the token before a middle's token, else one in a prefix."""
    continues = np.append(segments[1:] == segments[:-1], False)
    following = np.append(roles[1:], 0)
    middle = np.flatnonzero(continues & (following == MIDDLE))
    prefix = np.flatnonzero(continues & (following == PREFIX) & (roles == PREFIX))
    whole = np.flatnonzero(continues)
    picks = np.empty(count, dtype=np.int64)
    for i, in_middle in enumerate(rng.random(count) < IN_MIDDLE):
        first, second = (middle, prefix) if in_middle else (prefix, middle)
        pool = first if len(first) else second if len(second) else whole
        picks[i] = pool[rng.integers(0, len(pool))] if len(pool) else 0
    return picks


def _causal_rows(
    rng: np.random.Generator, tokens: Ints, roles: npt.NDArray[np.uint8], segments: Ints, recipe: Recipe
) -> tuple[Ints, Ints, Floats]:
    """Flat clean rows [K] to score, their targets and weights: every middle's token, then a draw of the prefixes'."""
    follows = np.zeros_like(segments, dtype=np.bool_)
    follows[:, :-1] = segments[:, 1:] == segments[:, :-1]
    target_role = np.zeros_like(roles)
    target_role[:, :-1] = roles[:, 1:]
    targets = np.zeros_like(tokens)
    targets[:, :-1] = tokens[:, 1:]
    middle = np.flatnonzero((follows & (target_role == MIDDLE)).reshape(-1))
    prefix = np.flatnonzero((follows & (target_role == PREFIX) & (roles == PREFIX)).reshape(-1))
    count = recipe.causal_rows or tokens.size
    chosen = np.concatenate([rng.permutation(middle)[:count], rng.permutation(prefix)])[:count]
    weights = np.where(target_role.reshape(-1)[chosen] == MIDDLE, recipe.middle_weight, recipe.prefix_weight)
    spare = count - len(chosen)
    return (
        np.pad(chosen, (0, spare)),
        np.pad(targets.reshape(-1)[chosen], (0, spare)),
        np.pad(weights.astype(np.float32), (0, spare)),
    )
