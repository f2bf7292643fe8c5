"""Reads `config.json` of a checkpoint folder and the shape of a dense transformer out of it.

Knows the names that published checkpoints use; knows no family's way of denoising.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remask.contract.errors import ModelError
from remask.engine.models.spec import Shape

Config = Mapping[str, Any]

LARGEST = 10**9  # of any size in a config


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a checkpoint's file; raises ModelError where it is missing or damaged."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"There is no checkpoint in {path.parent}: {path.name} is missing.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"The file {path} cannot be read: {error}.") from None
    if not isinstance(values, dict):
        raise ModelError(f"The file {path} is not a JSON object.")
    return values


def dense_shape(config: Config, *, qkv_bias: bool, qk_norm: bool) -> Shape:
    """The shape of a LLaMA-, Qwen2- or Qwen3-like transformer.

    Raises ModelError for what the native transformer does not compute, ValueError, KeyError or TypeError for
    values that are wrong or missing.
    """
    heads = positive(config, "num_attention_heads")
    width = positive(config, "hidden_size")
    _refuse_unknown_parts(config)
    biases = bool(config.get("attention_bias", False)) and not _qwen2(config)  # Qwen2 has biases of its own kind
    shape = Shape(
        layers=positive(config, "num_hidden_layers"),
        width=width,
        heads=heads,
        kv_heads=positive({"num_key_value_heads": config.get("num_key_value_heads") or heads}, "num_key_value_heads"),
        head_dim=positive({"head_dim": config.get("head_dim") or width // heads}, "head_dim"),
        mlp_width=positive(config, "intermediate_size"),
        vocab=positive(config, "vocab_size"),
        max_positions=positive(config, "max_position_embeddings"),
        rope_theta=_rope_theta(config),
        norm_eps=_above_zero("rms_norm_eps", float(config["rms_norm_eps"])),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        qkv_bias=qkv_bias or biases,
        o_bias=biases,
        qk_norm=qk_norm,
    )
    if shape.heads % shape.kv_heads:
        raise ValueError(f"{shape.heads} heads cannot share {shape.kv_heads} KV heads")
    return shape


def positive(values: Config, name: str) -> int:
    """A whole number above 0. Raises KeyError or ValueError."""
    value = values[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
        raise ValueError(f"{name} is a whole number above 0 and not absurdly large, not {value!r}")
    return value


def _rope_theta(config: Config) -> float:
    nested = config.get("rope_parameters") or {}
    theta = float(config["rope_theta"] if "rope_theta" in config else nested["rope_theta"])
    return _above_zero("rope_theta", theta)


def _above_zero(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is above 0, not {value}")
    return value


def _qwen2(config: Config) -> bool:
    return "qwen2" in str(config.get("model_type", "")).lower()


def _refuse_unknown_parts(config: Config) -> None:
    """What the native transformer would silently compute wrong."""
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if not isinstance(rope, Mapping):
        raise ValueError(f"rope_scaling is an object, not {rope!r}")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise ModelError(f"Remask does not compute rotary positions of the kind {kind!r} yet.")
    if config.get("use_sliding_window"):
        raise ModelError("Remask does not compute sliding-window attention yet.")
    if config.get("quantization_config"):
        raise ModelError("Remask does not read checkpoints that are quantised in this way; it reads int8 rows only.")
    if config.get("num_experts"):
        raise ModelError("Remask's own transformer is dense; it does not run mixtures of experts.")
    if config.get("mlp_bias"):
        raise ModelError("Remask does not compute MLP biases yet.")
    activation = config.get("hidden_act", "silu")
    if activation not in ("silu", "swish"):
        raise ModelError(f"Remask does not compute the activation {activation!r} yet.")
