"""Steering vectors: what is added to the hidden states behind a layer, read from files and put into a model.

A file is made for the weights of one model (see `training.steering`). What a steered model has read differs from what
the plain one reads, so a steered one has a fingerprint of its own. Sources: activation addition (Turner et al. 2023),
contrastive activation addition, the difference of means (Rimsky et al. 2024). Knows no requests.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from remask.contract.errors import InputError, ModelError, StorageError
from remask.engine.models.adapter import adapters_over, digest_of
from remask.engine.models.choice import find_adapter, find_model
from remask.engine.models.model import Model
from remask.engine.models.spec import Regime

FORMAT = "1"
TENSOR = "vector"
MOST = 100.0  # times the vector, either way
ANOTHER = "Train one for this model with 'remask train steer'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """A vector [width] float32 for the states behind `layer`, counted from 0, of the weights with the digest `base`.

    facts: how it was made, as JSON values.
    """

    vector: Tensor
    layer: int
    base: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Steer:
    """A file, and how often its vector is added; negative takes it away."""

    path: Path
    strength: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Steer:
        """`FILE` or `FILE:strength`. Raises InputError for a strength out of bounds."""
        path, colon, tail = text.rpartition(":")
        try:
            strength = float(tail)
        except ValueError:
            return cls(Path(text))  # a path may have colons of its own
        if not colon or not path:
            return cls(Path(text))
        if not math.isfinite(strength) or abs(strength) > MOST:
            raise InputError(f"A steering vector's strength is {-MOST:g} to {MOST:g}, not {tail}.")
        return cls(Path(path), strength)

    def __str__(self) -> str:
        return f"{self.path}:{self.strength:g}"


def steered(model: Model, source: Path | None, adapter: Path | None, steers: Sequence[Steer]) -> Model:
    """The model, loaded from `source` and `adapter`, with vectors behind its layers; those of one layer are added up.

    Raises ModelError for a file that is damaged or made for other weights, and InputError where the model takes none.
    """
    if not steers:
        return model
    spec, transformer = model.spec, model.transformer
    if spec.regime is Regime.UNIFORM:
        raise InputError(f"Remask steers no checkpoints of the family of {spec.name}.")
    folder = find_model(source)
    base = digest_of(folder, adapters_over(folder, find_adapter(adapter, source)))
    added: dict[int, Tensor] = {}
    for steer in steers:
        one = load_steering(steer.path, base=base, layers=spec.shape.layers, width=spec.shape.width)
        added[one.layer] = added.get(one.layer, torch.zeros_like(one.vector)) + steer.strength * one.vector
    transformer.steer(dict(sorted(added.items())))
    return replace(model, fingerprint=f"{model.fingerprint}-steered-{digest(added)}")


def digest(added: Mapping[int, Tensor]) -> str:
    """Names what is added behind which layers."""
    found = hashlib.sha256()
    for layer, vector in sorted(added.items()):
        found.update(f"{layer} ".encode() + vector.float().contiguous().numpy().tobytes())
    return found.hexdigest()[:32]


def load_steering(path: Path, *, base: str, layers: int, width: int) -> Steering:
    """Read a vector for the weights with the digest `base`. Raises ModelError for a damaged one or another model's."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = _read_facts(path, file.metadata() or {})
            if facts["base"] != base:
                raise ModelError(f"The steering vector {path} was made for other weights.", advice=ANOTHER)
            fits = list(file.keys()) == [TENSOR] and list(file.get_slice(TENSOR).get_shape()) == [width]
            if not fits or facts["width"] != width or not facts["layer"] < layers:
                raise ModelError(f"The steering vector {path} does not fit this model.", advice=ANOTHER)
            vector = file.get_tensor(TENSOR).float()
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The steering vector {path} cannot be read: {error}.", advice=ANOTHER) from None
    if not vector.isfinite().all():
        raise ModelError(f"The steering vector {path} is damaged: it holds numbers that are none.", advice=ANOTHER)
    return Steering(vector=vector, layer=facts["layer"], base=base, facts=facts["facts"])


def save_steering(path: Path, steering: Steering) -> None:
    """Write a vector, float32, under a temporary name, and rename it. Raises StorageError."""
    metadata = {
        "format": FORMAT,
        "layer": str(steering.layer),
        "width": str(len(steering.vector)),
        "base": steering.base,
        "facts": json.dumps(dict(steering.facts)),
    }
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({TENSOR: steering.vector.float().contiguous().cpu()}, unfinished, metadata)
        os.replace(unfinished, path)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"The steering vector cannot be written to {path}: {error}.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _read_facts(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """What a file says of itself, checked: layer, width, base and facts."""
    if metadata.get("format") != FORMAT:
        raise ModelError(f"{path} is no steering vector that this version reads.", advice=ANOTHER)
    try:
        facts: dict[str, Any] = {name: json.loads(metadata[name]) for name in ("layer", "width", "facts")}
        facts["base"] = metadata["base"]
        sound = all(type(facts[name]) is int and facts[name] >= 0 for name in ("layer", "width"))
        sound = sound and isinstance(facts["facts"], dict)
    except (KeyError, ValueError, RecursionError):
        sound = False
    if not sound:
        raise ModelError(f"The steering vector {path} is damaged: what it says is not sound.", advice=ANOTHER)
    return facts
