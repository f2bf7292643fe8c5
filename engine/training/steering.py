"""Makes a steering vector: what texts of one kind have in their hidden states that texts of another kind lack.

v = mean of the states behind a layer over all tokens with it, less the mean without it. The first tokens of a text are
left out: their states are large and say nothing (attention sinks, Xiao et al. 2023). Source: contrastive activation
addition (Rimsky et al. 2024), difference of means. Knows a loaded model and texts; knows no files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from remask.contract.errors import InputError
from remask.engine.control.steering import Steering
from remask.engine.models.model import Model
from remask.engine.models.passes import Pass, Taps
from remask.engine.models.spec import ModelSpec, Regime

WINDOW = 256  # tokens a pass reads; longer texts are read in pieces
SKIPPED = 4  # tokens at a piece's start
LEAST = 8  # tokens a piece needs
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Means:
    """Of one side: the mean state [width] float32, the number of tokens, and each piece's own mean [pieces, width]."""

    mean: Tensor
    tokens: int
    pieces: Tensor


def make_steering(
    model: Model,
    having: Sequence[str],
    lacking: Sequence[str],
    layer: int,
    base: str,
    progress: Progress = lambda _: None,
) -> Steering:
    """The vector from texts that have it and texts that lack it; `base` is the digest of the model's weights.

    Raises InputError for a layer that the model does not have, and for texts that are too short.
    """
    spec = model.spec
    if spec.regime is Regime.UNIFORM:
        raise InputError(f"Remask steers no checkpoints of the family of {spec.name}.")
    if not 0 <= layer < spec.shape.layers:
        raise InputError(f"The layer is 0 to {spec.shape.layers - 1} for {spec.name}, not {layer}.")
    sides = [pieces_of(model, texts) for texts in (having, lacking)]
    for pieces, name in zip(sides, ("with", "without"), strict=True):
        if not pieces:
            raise InputError(f"The texts {name} it have fewer than {LEAST} tokens.")
    whole, done, means = sum(map(len, sides)), 0, []
    for pieces in sides:
        states = []
        for piece in pieces:
            states.append(states_of(model, piece, layer))
            done += 1
            progress(done / whole)
        means.append(_means(states))
    one, other = means
    vector = one.mean - other.mean
    if not float(vector.norm()):
        raise InputError("The texts with it and without it are the same to the model.")
    return Steering(vector=vector, layer=layer, base=base, facts=_facts(one, other, vector))


def pieces_of(model: Model, texts: Sequence[str]) -> list[list[int]]:
    """The texts' tokens in pieces, each behind the mark that code starts with where the model has one."""
    start = [model.spec.prefix_id] if model.spec.prefix_id >= 0 else []
    pieces = []
    for text in texts:
        tokens = model.encode(text)
        cut = [tokens[at : at + WINDOW] for at in range(0, len(tokens), WINDOW)]
        pieces += [[*start, *one] for one in cut if len(one) >= LEAST]
    return pieces


@torch.inference_mode()
def states_of(model: Model, tokens: list[int], layer: int) -> Tensor:
    """The hidden states [T, width] float32 behind a layer, read as the model reads known text, but the first ones."""
    taps, transformer = Taps((layer,)), model.transformer
    transformer.forward(_reading(model.spec, tokens, transformer.device), transformer.new_cache(), taps)
    return taps.states[0][SKIPPED:].float().cpu()


def _reading(spec: ModelSpec, tokens: list[int], device: torch.device) -> Pass:
    if spec.regime is Regime.BIDIRECTIONAL:
        return Pass.canvas(tokens, 0, device)
    if spec.regime is Regime.BLOCK_CAUSAL:
        return Pass.block_causal(tokens, 0, spec.block_size, device)
    return Pass.causal(tokens, 0, device)


def _means(states: Sequence[Tensor]) -> Means:
    count = sum(map(len, states))
    total = torch.stack([one.double().sum(0) for one in states]).sum(0)
    return Means((total / count).float(), count, torch.stack([one.mean(0) for one in states]))


def _facts(one: Means, other: Means, vector: Tensor) -> dict[str, object]:
    """Numbers of tokens, the vector's length as a share of a mean state's, and how well it tells the pieces apart.

    told_apart: the share of pairs (a piece with it, one without) in which the first lies further along the vector.
    """
    along = [m.pieces @ vector for m in (one, other)]
    further = (along[0][:, None] > along[1][None, :]).float().mean()
    size = vector.norm() / torch.stack([one.mean, other.mean]).norm(dim=1).mean()
    return {
        "tokens_with": one.tokens,
        "tokens_without": other.tokens,
        "size": round(float(size), 4),
        "told_apart": round(float(further), 4),
    }
