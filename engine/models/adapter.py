"""LoRA adapters in PEFT's files: read, checked against a base, and merged into it while it is loaded.

`adapter_config.json` says how, `adapter_model.safetensors` holds the matrices: floating, or int8 rows with float32
`<name>_scale`. An adapter that Remask wrote names its base by digest and is refused over another. A checkpoint folder
may carry an adapter of its own, which is merged by default. What would be read wrong is refused by name; nothing is
ever unpickled. Source of the format: PEFT's documentation of its checkpoint files.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from remask.contract.errors import ModelError
from remask.engine.models.checkpoint import read_weights, stored_tensors
from remask.engine.models.config import read_json
from remask.engine.models.lowrank import LowRank
from remask.engine.models.shards import checksums, open_shard, shards_of, verify
from remask.engine.models.spec import Shape

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."  # PEFT's, before the names of the base

_TENSOR = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])(?:\.default)?\.weight")
_FLOATS = {torch.float16, torch.bfloat16, torch.float32}
_ALTERS_BASE = "starts from changed base weights"
_REFUSED = {  # settings of PEFT that change what the matrices mean
    "use_dora": "is a DoRA adapter",
    "modules_to_save": "replaces whole modules (modules_to_save)",
    "fan_in_fan_out": "holds transposed matrices (fan_in_fan_out)",
    "lora_bias": "has biases of its own (lora_bias)",
    "rank_pattern": "has ranks of their own for some modules (rank_pattern)",
    "alpha_pattern": "has factors of their own for some modules (alpha_pattern)",
    "layer_replication": "repeats layers (layer_replication)",
    "trainable_token_indices": "changes embeddings (trainable_token_indices)",
    "target_parameters": "changes parameters outside linear layers (target_parameters)",
    "alora_invocation_tokens": "acts behind certain tokens only (alora_invocation_tokens)",
}
_PLAIN_STARTS = (True, False, None, "gaussian", "orthogonal", "eva")  # that leave the base as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """What an adapter's configuration says. `base` is the digest of the weights it was made for, "" if it names none.

    `titled`: it has a name of its own, by which the adapted model goes. `scale` multiplies its products.
    """

    folder: Path
    name: str
    titled: bool
    rank: int
    scale: float
    base: str
    base_name: str

    def title(self, base: str) -> str:
        """What a base of that name is called once this is merged into it."""
        return self.name if self.titled else f"{base}+{self.name}"


def carries_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter, or a part of one."""
    return any((folder / name).is_file() for name in (CONFIG, WEIGHTS))


def read_adapter(folder: Path) -> Adapter:
    """An adapter's configuration, checked. Raises ModelError for what is missing, damaged or would be read wrong."""
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise ModelError(
                f"There is no whole adapter in {folder}: {name} is missing.",
                advice="A pickled one has to be converted to safetensors." if _pickled(folder) else "",
            )
    config = read_json(folder / CONFIG)
    own = config.get("remask") or {}
    base = own.get("base") or {} if isinstance(own, Mapping) else None
    if not isinstance(base, Mapping):
        raise ModelError(f'The "remask" section of {folder / CONFIG} is not an object.')
    _refuse_foreign(folder, config)
    rank, alpha = config.get("r"), config.get("lora_alpha", config.get("r"))
    if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= 65_536:
        raise ModelError(f"The adapter in {folder} has no possible rank: r is {rank!r}.")
    if not isinstance(alpha, int | float) or not math.isfinite(alpha):
        raise ModelError(f"The adapter in {folder} has no possible factor: lora_alpha is {alpha!r}.")
    return Adapter(
        folder=folder,
        name=" ".join(str(own.get("name") or folder.resolve().name).split())[:80],
        titled=bool(own.get("name")),
        rank=rank,
        scale=alpha / (math.sqrt(rank) if config.get("use_rslora") else rank),
        base=str(base.get("sha256") or ""),
        base_name=str(base.get("name") or config.get("base_model_name_or_path") or "another model"),
    )


def adapters_over(folder: Path, named: Path | None = None) -> list[Adapter]:
    """The adapters to merge into the checkpoint in `folder`: the one it carries, then the one in the folder `named`.

    One that was made for the shards alone takes the carried one's place. Raises ModelError for another base.
    """
    carried = read_adapter(folder) if carries_adapter(folder) else None
    if carried is not None and carried.base and carried.base != digest_of(folder):
        raise _other_base(carried, folder)
    own = [] if carried is None else [carried]
    if named is None or (carried is not None and named.resolve() == folder.resolve()):
        return own
    adapter = read_adapter(named)
    if not adapter.base or adapter.base == digest_of(folder, own):
        return [*own, adapter]
    if own and adapter.base == digest_of(folder):
        return [adapter]
    raise _other_base(adapter, folder)


def digest_of(folder: Path, adapters: Sequence[Adapter] = ()) -> str:
    """A sha256 (hexadecimal) that names the weights in `folder` with adapters merged, whatever the files are called.

    SHA256SUMS is believed where it names a file: loading holds the file to it. Raises ModelError.
    """
    known = checksums(folder)
    parts = sorted(known.get(path.name) or _sha256(path) for path in shards_of(folder))
    for adapter in adapters:
        path = adapter.folder / WEIGHTS
        parts += [checksums(adapter.folder).get(path.name) or _sha256(path), repr(adapter.scale)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def read_updates(adapters: Sequence[Adapter], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, list[LowRank]]:
    """What adapters add to each matrix of a base, whose shapes are given by name. Raises ModelError for a misfit."""
    updates: dict[str, list[LowRank]] = {}
    for adapter in adapters:
        for name, update in _read_pairs(adapter).items():
            shape = shapes.get(name)
            if shape is None or len(shape) != 2 or name == "model.embed_tokens.weight":
                raise ModelError(f"The adapter {adapter.name} changes {name!r}, which is no matrix of this model.")
            if update.shape != shape:
                raise ModelError(
                    f"The adapter {adapter.name} changes {name} as one of the shape {update.shape}, "
                    f"and this model's is {tuple(shape)}."
                )
            updates.setdefault(name, []).append(update)
    return updates


def read_merged(
    folder: Path, shape: Shape, adapters: Sequence[Adapter], *, dtype: torch.dtype, device: torch.device
) -> dict[str, Tensor]:
    """`read_weights` with adapters merged into it. Raises ModelError."""
    updates = read_updates(adapters, stored_tensors(folder, shape)) if adapters else {}
    return read_weights(folder, shape, dtype=dtype, device=device, updates=updates)


def _refuse_foreign(folder: Path, config: Mapping[str, Any]) -> None:
    kind = config.get("peft_type")
    if kind != "LORA":
        raise ModelError(f"The adapter in {folder} is of the kind {kind!r}; Remask merges LORA only.")
    for name, says in _REFUSED.items():
        if config.get(name):
            raise ModelError(f"The adapter in {folder} {says}, which Remask does not merge.")
    if config.get("bias", "none") != "none":
        raise ModelError(f"The adapter in {folder} changes biases (bias: {config['bias']!r}); Remask merges none.")
    if config.get("init_lora_weights", True) not in _PLAIN_STARTS:
        raise ModelError(
            f"The adapter in {folder} {_ALTERS_BASE} (init_lora_weights: {config['init_lora_weights']!r}).",
            advice="Convert it to a plain LoRA where it was trained.",
        )
    unknown = sorted(n for n, v in config.items() if n.startswith("use_") and v and n != "use_rslora")
    if unknown:
        raise ModelError(f"The adapter in {folder} sets {unknown[0]}, which Remask does not know.")


def _read_pairs(adapter: Adapter) -> dict[str, LowRank]:
    """The pairs by the full name of their matrix, each of the adapter's rank."""
    path = adapter.folder / WEIGHTS
    verify(path, checksums(adapter.folder).get(path.name))
    halves: dict[str, dict[str, Tensor]] = {}
    with open_shard(path) as shard:
        names = set(shard.keys())
        for name in sorted(n for n in names if not _is_scale(n, names)):
            found = _TENSOR.fullmatch(name)
            if found is None:
                raise ModelError(f"The adapter {adapter.name} holds {name!r}, which Remask does not read.")
            halves.setdefault(f"{found[1]}.weight", {})[found[2]] = _read_half(shard, adapter, name, names)
    if not halves:
        raise ModelError(f"The adapter {adapter.name} holds no matrices.")
    return {name: _pair(adapter, name, two) for name, two in halves.items()}


def _is_scale(name: str, names: set[str]) -> bool:
    return name.endswith("_scale") and name.removesuffix("_scale") in names


def _read_half(shard: safe_open, adapter: Adapter, name: str, names: set[str]) -> Tensor:
    """One matrix, float32; int8 rows times their scales."""
    try:
        half: Tensor = shard.get_tensor(name)
        scale: Tensor | None = shard.get_tensor(f"{name}_scale") if f"{name}_scale" in names else None
    except SafetensorError as error:
        raise ModelError(f"The adapter {adapter.name} cannot be read at {name!r}: {error}.") from None
    quantised = half.dtype == torch.int8
    if half.ndim != 2 or quantised is (scale is None) or not (quantised or half.dtype in _FLOATS):
        raise ModelError(f"The adapter {adapter.name} stores {name!r} in a way that Remask does not read.")
    if scale is None:
        return half.float()
    if scale.shape != half.shape[:1] or scale.dtype != torch.float32:
        raise ModelError(f"The adapter {adapter.name} has not one scale a row for {name!r}.")
    return half.float() * scale[:, None]


def _pair(adapter: Adapter, name: str, halves: Mapping[str, Tensor]) -> LowRank:
    if halves.keys() != {"A", "B"}:
        raise ModelError(f"The adapter {adapter.name} holds only one of the two matrices for {name}.")
    a, b = halves["A"], halves["B"]
    if not a.shape[0] == b.shape[1] == adapter.rank:
        raise ModelError(
            f"The adapter {adapter.name} has the ranks {a.shape[0]} and {b.shape[1]} at {name}, "
            f"and its configuration says {adapter.rank}."
        )
    return LowRank(a, b * adapter.scale)


def _other_base(adapter: Adapter, folder: Path) -> ModelError:
    return ModelError(
        f"The adapter {adapter.name} was made for other weights ({adapter.base_name}) than those in {folder}.",
        advice="Name its own base with --model.",
    )


def _sha256(path: Path) -> str:
    verify(path, None)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pickled(folder: Path) -> bool:
    return (folder / "adapter_model.bin").is_file()
