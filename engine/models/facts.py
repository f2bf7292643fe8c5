"""What can be said of a checkpoint without loading it: family, size, memory, licence, and whether it fits here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from remask.engine.models.adapter import adapters_over
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.families import FAMILIES
from remask.engine.models.model import choose_device, choose_dtype
from remask.engine.models.read_spec import read_spec
from remask.engine.models.spec import Layout, ModelSpec, Regime

CONTEXT_TOKENS = 4096  # of KV state that memory is reckoned with
WORKING_SHARE = 1.15  # activations and what the allocator wastes

PUBLISHED_SIZES = {  # billions of parameters of the checkpoints that people use
    "remask": (0.135,),
    "open-dcoder": (0.5,),
    "tiny-a2d": (0.5, 0.6),
    "fast-dllm-v2": (1.5, 7.6),
    "sdar": (1.7, 4.0, 8.2),
    "wedlm": (7.6, 8.2),
    "dream": (7.6,),
    "dreamon": (7.6,),
    "diffusion-gemma": (26.0,),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """A checkpoint in numbers and words. Memory is in bytes, as the weights would be held here.

    memory_eight_bits: with weights in int8 or float8, 0 for a family that does not run so.
    """

    name: str
    folder: str
    family: str
    regime: str
    parameters: int
    memory: int
    fits: bool
    infilling: str
    cache: str
    verifies: bool
    policy: str
    licence: str
    adapters: tuple[str, ...] = ()  # merged into it, in this order
    memory_eight_bits: int = 0


def facts_of(folder: Path, adapter: Path | None = None) -> Facts:
    """Read what the folder's files and an adapter's say.

    Raises ModelError where they are missing, damaged, of an unknown kind or do not belong together.
    """
    spec = read_spec(folder, read_tokenizer(folder))
    name, adapters = spec.name, adapters_over(folder, adapter)
    for one in adapters:
        name = one.title(name)
    width = choose_dtype("auto", choose_device("auto")).itemsize
    sizes = spec.shape.parameters, spec.shape.kv_values_per_token
    memory = memory_needed(*sizes, width)
    return Facts(
        name=name,
        folder=str(folder),
        family=spec.family,
        regime=spec.regime.value,
        parameters=spec.shape.parameters,
        memory=memory,
        fits=memory <= free_memory(),
        infilling=_infilling(spec),
        cache=_cache(spec),
        verifies=spec.verifies,
        policy=spec.policy,
        licence=licence_of(folder),
        adapters=tuple(one.name for one in adapters),
        memory_eight_bits=0 if spec.regime is Regime.UNIFORM else memory_needed(*sizes, 1),
    )


def memory_needed(parameters: float, kv_values_per_token: int = 0, dtype_bytes: int = 2) -> int:
    """Bytes for the weights and the KV state of 4,096 tokens, of 16 bits at least, with room to work."""
    held = parameters * dtype_bytes + kv_values_per_token * CONTEXT_TOKENS * max(2, dtype_bytes)
    return int(held * WORKING_SHARE)


def free_memory() -> int:
    """Bytes that a model may take: of the GPU where there is one, else of the machine."""
    if torch.cuda.is_available():
        free, _ = torch.cuda.mem_get_info()
        return int(free)
    return int(psutil.virtual_memory().available)


def families_that_fit() -> dict[str, list[float]]:
    """For each family's title the published sizes, in billions of parameters, that fit here in 16-bit weights."""
    titles = {f.name: f.title for f in FAMILIES.values()}
    room = free_memory()
    return {
        titles[name]: [size for size in sizes if memory_needed(size * 1e9) <= room]
        for name, sizes in PUBLISHED_SIZES.items()
    }


def licence_of(folder: Path) -> str:
    """The licence named at the top of the model card, or "not stated"."""
    try:
        head = (folder / "README.md").read_text(encoding="utf-8", errors="replace")[:4000]
    except OSError:
        return "not stated (no model card)"
    found = re.search(r"^license(?:_name)?:\s*(\S.*)$", head, re.MULTILINE)
    return found[1].strip() if found else "not stated"


def _infilling(spec: ModelSpec) -> str:
    return {
        Layout.SUFFIX_PREFIX: "trained to fill holes",
        Layout.FIM: "trained to fill holes",
        Layout.HOLE: "reads both sides of the hole",
        Layout.CHAT: "is asked to fill the hole",
    }[spec.layout]


def _cache(spec: ModelSpec) -> str:
    if spec.regime is Regime.BIDIRECTIONAL:
        return "off (nothing stays valid)"
    if spec.regime is Regime.UNIFORM:
        return "on while the prompt is shorter than the sliding window"
    return f"whole blocks of {spec.block_size}" if spec.regime is Regime.BLOCK_CAUSAL else "on"
