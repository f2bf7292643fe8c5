"""Writes weights as int8 rows with a float32 scale each: a model in shards, or the pairs of an adapter.

Knows names, shapes and the file format; not where the tensors come from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from remask.engine.models.checkpoint import quantise
from remask.engine.models.shards import INDEX

SHARD_BYTES = (
    47_500_000  # of tensors; with its header a shard stays under 48 MB, which code hosts take without complaint
)

Read = Callable[[str], dict[str, Tensor]]


def write_shards(
    folder: Path, shapes: Mapping[str, tuple[int, ...]], read: Read, limit: int = SHARD_BYTES
) -> list[str]:
    """Write the tensors that `read` gives for each name, in shards with an index; the shards' names.

    A tensor that is larger than a shard has one of its own. Raises OSError or SafetensorError.
    """
    plan: list[list[str]] = [[]]
    room = limit
    for name, shape in shapes.items():
        size = _stored_bytes(shape)
        if size > room and plan[-1]:
            plan.append([])
            room = limit
        plan[-1].append(name)
        room -= size
    placed: dict[str, str] = {}
    for number, names in enumerate(plan, start=1):
        file = f"model-{number:05}-of-{len(plan):05}.safetensors"
        part = {stored: tensor for name in names for stored, tensor in read(name).items()}
        save_tensors(part, folder / file)
        placed |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": sum(map(_stored_bytes, shapes.values()))}, "weight_map": placed}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return sorted(set(placed.values()))


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write one file, readable by all: the library makes it the writer's alone. Raises OSError or SafetensorError."""
    save_file(dict(tensors), path)
    path.chmod(0o644)


def int8_rows(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """A matrix as int8 rows and their scales, anything else as float32."""
    if tensor.ndim != 2:
        return {name: tensor.float().contiguous()}
    rows, scale = quantise(tensor)
    return {name: rows.contiguous(), f"{name}_scale": scale.contiguous()}


def balanced(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The same product, with columns of `b` [out, rank] of one length, so that its rounded rows err the least.

    A row of `b` has one step for all its columns, a row of `a` [rank, in] a step of its own, and takes the lengths.
    """
    length = b.norm(dim=0)
    length = torch.where(length > 0, length, 1.0)
    return a * length[:, None], b / length


def _stored_bytes(shape: tuple[int, ...]) -> int:
    return math.prod(shape) + 4 * shape[0] if len(shape) == 2 else 4 * math.prod(shape)
