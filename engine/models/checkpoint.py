"""Reads a checkpoint folder: safetensors shards, whole or with int8 rows, each tensor checked before it is used.

Never pickles. One tensor is in memory twice at a time, never the model. Knows names and shapes, not what
the tensors compute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import Tensor

from remask.contract.errors import ModelError
from remask.engine.models.lowrank import LowRank, merged_rows
from remask.engine.models.matrix import EIGHT_BITS, LARGEST
from remask.engine.models.shards import checksums, open_shard, shards_of, verify
from remask.engine.models.spec import Shape

HEAD = "lm_head.weight"
STORED = {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8}
ALIGNMENT = 64  # elements; every view starts on a cache line
MERGED_STEPS = LARGEST | {torch.int8: 125}  # not 127: on the steps that int8 rows come from, rounding undoes updates
CHUNK_ROWS = 512  # rows dequantised at a time: bounds the float32 copy that a narrower result needs


def read_tokenizer(folder: Path) -> Tokenizer:
    """The checkpoint's tokenizer; names of special tokens in source text stay plain text. Raises ModelError."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"There is no tokenizer in {folder}: tokenizer.json is missing.")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"The tokenizer {path} cannot be read: {error}.") from None
    tokenizer.encode_special_tokens = True
    return tokenizer


def read_weights(
    folder: Path,
    shape: Shape,
    *,
    dtype: torch.dtype,
    device: torch.device,
    updates: Mapping[str, Sequence[LowRank]] | None = None,
) -> dict[str, Tensor]:
    """All tensors that `shape` needs, in `dtype` on `device`.

    An int8 matrix [out, in] with float32 `<name>_scale` [out] stands for int8 * scale[:, None]. With `dtype` int8 or
    float8_e4m3fn matrices stay (or become, rounded) such pairs, and all else is of the dtype that is computed in:
    float32 on a processor, bfloat16 on a card. `updates` are added to the matrices they name. Raises ModelError for
    missing, damaged, superfluous or misshapen tensors; nothing is kept then.
    """
    shards = shards_of(folder)
    weights = _allocate_all(_stored_tensors(shards, shape), dtype, device)
    missing = {name for name in weights if not name.endswith("_scale")}
    sums = checksums(folder)
    for path, names in shards.items():
        verify(path, sums.get(path.name))
        unknown = [n for n in names if n.removesuffix("_scale") not in weights]
        _refuse_foreign_scales(path, names)
        if unknown:
            raise ModelError(f"The shard {path.name} holds {unknown[0]!r}, which the model does not have.")
        with open_shard(path) as shard:
            for name in (n for n in names if not n.endswith("_scale")):
                target, target_scale = weights[name], weights.get(f"{name}_scale")
                _read_tensor(shard, path.name, name, target, target_scale, (updates or {}).get(name, ()))
                missing.discard(name)
    if missing:
        raise ModelError(f"The checkpoint in {folder} lacks {min(missing)!r} ({len(missing)} tensors missing).")
    return weights


def stored_tensors(folder: Path, shape: Shape) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights that `read_weights` gives for a checkpoint folder. Raises ModelError."""
    return _stored_tensors(shards_of(folder), shape)


def _stored_tensors(shards: Mapping[Path, Sequence[str]], shape: Shape) -> dict[str, tuple[int, ...]]:
    return expected_tensors(_as_stored(shape, {name for names in shards.values() for name in names}))


def _as_stored(shape: Shape, names: set[str]) -> Shape:
    """The shape with the parts that are stored although the config does not say so: a head of its own, biases, norms.

    Some checkpoints untie the head and leave the flag; some families have both Qwen2- and Qwen3-shaped members.
    """
    first = "model.layers.0.self_attn."
    return replace(
        shape,
        tied_embeddings=shape.tied_embeddings and HEAD not in names,
        qkv_bias=shape.qkv_bias or f"{first}q_proj.bias" in names,
        o_bias=shape.o_bias or f"{first}o_proj.bias" in names,
        qk_norm=shape.qk_norm or f"{first}q_norm.weight" in names,
    )


def expected_tensors(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a LLaMA-layout checkpoint."""
    s = shape
    names: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (s.vocab, s.width),
        "model.norm.weight": (s.width,),
    }
    if not s.tied_embeddings:
        names[HEAD] = (s.vocab, s.width)
    for i in range(s.layers):
        names |= {f"model.layers.{i}.{name}": size for name, size in _layer_tensors(shape).items()}
    return names


def _layer_tensors(s: Shape) -> dict[str, tuple[int, ...]]:
    queries, keys = s.heads * s.head_dim, s.kv_heads * s.head_dim
    names: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (s.width,),
        "post_attention_layernorm.weight": (s.width,),
        "self_attn.q_proj.weight": (queries, s.width),
        "self_attn.k_proj.weight": (keys, s.width),
        "self_attn.v_proj.weight": (keys, s.width),
        "self_attn.o_proj.weight": (s.width, queries),
        "mlp.gate_proj.weight": (s.mlp_width, s.width),
        "mlp.up_proj.weight": (s.mlp_width, s.width),
        "mlp.down_proj.weight": (s.width, s.mlp_width),
    }
    if s.qkv_bias:
        names |= {f"self_attn.{p}_proj.bias": (size,) for p, size in (("q", queries), ("k", keys), ("v", keys))}
    if s.o_bias:
        names["self_attn.o_proj.bias"] = (s.width,)
    if s.qk_norm:
        names |= {"self_attn.q_norm.weight": (s.head_dim,), "self_attn.k_norm.weight": (s.head_dim,)}
    return names


def _refuse_foreign_scales(path: Path, names: list[str]) -> None:
    """Scales belong to int8 rows; beside another type they are some quantisation that would be read wrong."""
    scaled = [n.removesuffix("_scale") for n in names if n.endswith("_scale")]
    if not scaled:
        return
    with open_shard(path) as shard:
        stored = set(shard.keys())
        for name in scaled:
            if name in stored and shard.get_slice(name).get_dtype() != "I8":
                raise ModelError(f"{name} in {path.name} is quantised in a way that Remask does not read.")


def _allocate_all(shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    if dtype not in EIGHT_BITS:
        return _allocate(shapes, dtype, device)
    matrices: dict[str, tuple[int, ...]] = {name: shape for name, shape in shapes.items() if len(shape) == 2}
    rest = {name: shape for name, shape in shapes.items() if name not in matrices}
    scales = {f"{name}_scale": shape[:1] for name, shape in matrices.items()}
    computed = torch.float32 if device.type == "cpu" else torch.bfloat16
    parts = ((matrices, dtype), (rest, computed), (scales, torch.float32))
    return {name: tensor for some, kind in parts for name, tensor in _allocate(some, kind, device).items()}


def _allocate(shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    """One flat buffer cut into views: hundreds of separate allocations would waste a fifth in rounding to pages."""
    sizes = {name: -(-math.prod(shape) // ALIGNMENT) * ALIGNMENT for name, shape in shapes.items()}
    try:
        parts = torch.empty(sum(sizes.values()), dtype=dtype, device=device).split(list(sizes.values()))
    except RuntimeError:  # torch.OutOfMemoryError is one; the CPU allocator raises the bare class
        gigabytes = sum(sizes.values()) * dtype.itemsize / 1e9
        raise ModelError(f"The model needs {gigabytes:.1f} GB, which {device} does not have free.") from None
    return {
        name: part[: math.prod(shape)].view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def _read_tensor(
    shard: safe_open,
    file: str,
    name: str,
    target: Tensor,
    target_scale: Tensor | None,
    updates: Sequence[LowRank],
) -> None:
    """Fill `target` from the shard: int8 rows are dequantised, or kept where there is a place for their scales."""
    stored, scale = _stored(shard, file, name, target)
    if updates:
        _merge(stored, scale, updates, target, target_scale)
    elif target_scale is not None:
        if scale is None or target.dtype != torch.int8:
            floats = stored if scale is None else stored.float() * scale[:, None]
            stored, scale = quantise(floats, dtype=target.dtype)
        target.copy_(stored)
        target_scale.copy_(scale)
    elif scale is None:
        target.copy_(stored)
    else:
        dequantise(stored, scale, target)


def _stored(shard: safe_open, file: str, name: str, target: Tensor) -> tuple[Tensor, Tensor | None]:
    """The tensor as it is stored, with its scales where it is int8 rows, checked."""
    try:
        stored: Tensor = shard.get_tensor(name)
        if stored.dtype not in STORED:
            raise ModelError(f"{name} in {file} is stored as {stored.dtype}, which Remask does not read.")
        scale: Tensor | None = shard.get_tensor(f"{name}_scale") if stored.dtype == torch.int8 else None
    except SafetensorError as error:
        raise ModelError(f"The shard {file} does not hold {name!r} as promised ({error}).") from None
    if scale is not None and (stored.ndim != 2 or scale.shape != stored.shape[:1]):
        raise ModelError(f"The int8 matrix {name} has scales of the shape {tuple(scale.shape)}, not one a row.")
    if stored.shape != target.shape:
        raise ModelError(f"{name} has the shape {tuple(stored.shape)}, and config.json says {tuple(target.shape)}.")
    return stored, scale


def _merge(
    stored: Tensor, scale: Tensor | None, updates: Sequence[LowRank], target: Tensor, target_scale: Tensor | None
) -> None:
    """Fill `target` with the stored matrix and its updates, added in float32 and rounded once."""
    for chunk, rows in merged_rows(stored, scale, updates, target.device):
        if target_scale is None:
            target[chunk] = rows
        else:
            merged, target_scale[chunk] = quantise(rows, MERGED_STEPS[target.dtype], target.dtype)
            target[chunk].copy_(merged)


def quantise(matrix: Tensor, steps: float = 0, dtype: torch.dtype = torch.int8) -> tuple[Tensor, Tensor]:
    """The int8 or float8 rows and their scales [out] that come nearest to a floating-point matrix [out, in].

    steps: what the largest value of a row becomes; as much as the dtype holds where it is 0.
    """
    scale = (matrix.float().abs().amax(dim=1) / (steps or LARGEST[dtype])).clamp_min_(torch.finfo(torch.float32).tiny)
    values = matrix.float() / scale[:, None]
    return (values.round_() if dtype == torch.int8 else values).to(dtype), scale


def dequantise(rows: Tensor, scale: Tensor, target: Tensor) -> None:
    """Write int8 [out, in] times float32 [out] into `target`, a chunk of rows at a time."""
    for at in range(0, rows.shape[0], CHUNK_ROWS):
        chunk = slice(at, at + CHUNK_ROWS)
        if target.device.type == "cpu":
            torch.mul(rows[chunk], scale[chunk, None], out=target[chunk])
        else:
            target[chunk] = rows[chunk].to(target.device) * scale[chunk, None].to(target.device)
