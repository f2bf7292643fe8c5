"""Transformers of published sizes with random weights: they time as trained ones do and say nothing about quality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from remask.contract.errors import InputError, ModelError
from remask.engine.evaluation.random_gemma import random_gemma
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run
from remask.engine.models.checkpoint import expected_tensors
from remask.engine.models.matrix import EIGHT_BITS, FP8
from remask.engine.models.native import NativeTransformer
from remask.engine.models.spec import Shape
from remask.engine.models.transformer import Transformer


def _dense(layers: int, width: int, heads: tuple[int, int], mlp: int, vocab: int, **more: Any) -> Shape:
    values: dict[str, Any] = {"head_dim": width // heads[0], "rope_theta": 1e6, "norm_eps": 1e-6} | more
    return Shape(
        layers=layers,
        width=width,
        heads=heads[0],
        kv_heads=heads[1],
        mlp_width=mlp,
        vocab=vocab,
        max_positions=32768,
        tied_embeddings=values.pop("tied", False),
        **values,
    )


SHAPES: Mapping[str, Shape] = {  # as in the models' own config.json, but for the tiny ones, which are nobody's
    "tiny": _dense(2, 64, (4, 2), 128, 512),
    "tiny-gemma": _dense(2, 32, (4, 2), 48, 512, tied=True, experts=4, experts_each=2, expert_width=16),
    "smollm2-135m": _dense(30, 576, (9, 3), 1536, 49152, tied=True, rope_theta=1e5, norm_eps=1e-5),
    "qwen2.5-0.5b": _dense(24, 896, (14, 2), 4864, 151936, tied=True, qkv_bias=True),
    "qwen2.5-1.5b": _dense(28, 1536, (12, 2), 8960, 151936, tied=True, qkv_bias=True),
    "qwen2.5-7b": _dense(28, 3584, (28, 4), 18944, 152064, qkv_bias=True),
    "qwen3-8b": _dense(36, 4096, (32, 8), 12288, 151936, head_dim=128, qk_norm=True),
    "diffusiongemma-26b-a4b": _dense(
        30, 2816, (16, 8), 2112, 262144, head_dim=256, tied=True, experts=128, experts_each=8, expert_width=704
    ),
}


def random_transformer(name: str, dtype: torch.dtype, device: torch.device) -> Transformer:
    """A transformer of a published shape with random weights. Raises InputError or ModelError."""
    if shape_named(name).experts:
        return random_gemma(name, SHAPES[name], dtype, device)
    weights = random_weights(name, dtype, device)
    kind = NativeTransformer if dtype == torch.int8 and device.type == "cpu" else Transformer
    return (AcceleratedTransformer if kernels_run(device) else kind)(SHAPES[name], weights)


def shape_named(name: str) -> Shape:
    """One of `SHAPES`. Raises InputError."""
    if name not in SHAPES:
        raise InputError(f"The shape {name!r} is not known.", advice=f"Choose from {', '.join(SHAPES)}.")
    return SHAPES[name]


def random_weights(name: str, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    """Weights of a published dense shape, as `read_weights` would give them. Raises InputError or ModelError."""
    shape = shape_named(name)
    if shape.experts:
        raise InputError(f"The shape {name} runs through transformers; there is no plain pass of it.")
    try:
        if dtype in EIGHT_BITS:
            return _random_rows(shape, dtype, device)
        sizes = expected_tensors(shape)
        weights = {n: torch.empty(s, dtype=dtype, device=device) for n, s in sizes.items()}
    except RuntimeError:  # torch.OutOfMemoryError is one; the CPU allocator raises the bare class
        gigabytes = shape.parameters * dtype.itemsize / 1e9
        raise ModelError(f"The shape {name} needs {gigabytes:.1f} GB, which {device} does not have free.") from None
    for weight in weights.values():
        weight.normal_(0, 0.02) if weight.ndim == 2 else weight.fill_(1)
    return weights


def _random_rows(shape: Shape, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    computed = torch.float32 if device.type == "cpu" else torch.bfloat16
    weights: dict[str, Tensor] = {}
    for name, size in expected_tensors(shape).items():
        if len(size) == 1:
            weights[name] = torch.ones(size, dtype=computed, device=device)
            continue
        rows = torch.randint(-127, 128, size, dtype=torch.int8, device=device)
        weights[name] = rows.to(FP8) if dtype == FP8 else rows
        weights[f"{name}_scale"] = torch.full(size[:1], 0.02 / 73, device=device)
    return weights
