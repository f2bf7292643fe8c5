"""What a checkpoint is: its shape, how it attends, and which tokens mean what.

Read from the checkpoint's own files, never from a family default: the same token id is a mask in one
family and a tag in another. Knows nothing of weights in memory or of decoding.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from remask.contract.errors import ModelError

ARCHITECTURES = ("LlamaForCausalLM",)


class Regime(StrEnum):
    """How context tokens attend to each other, which decides how far KV survives an edit at token p."""

    CAUSAL = "causal"  # valid up to p
    BLOCK_CAUSAL = "block_causal"  # valid up to floor(p / B) * B
    BIDIRECTIONAL = "bidirectional"  # nothing stays valid


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The dense transformer's sizes and flags, named as the formulas in `transformer` use them."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    vocab: int
    max_positions: int
    rope_theta: float
    norm_eps: float
    tied_embeddings: bool
    attention_bias: bool = False
    qk_norm: bool = False

    @property
    def kv_values_per_token(self) -> int:
        """Numbers that one token adds to the KV cache."""
        return 2 * self.layers * self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Everything that differs between checkpoints.

    `shift`: 1 where the logits of a position predict the next one (so a canvas starts at the last known
    token), 0 where a masked position predicts itself. `verifies`: the weights were trained with an
    autoregressive loss, so the causal reading may judge a canvas. `prefix_tokens` and `suffix_tokens`
    bound the prompt's windows.
    """

    name: str
    shape: Shape
    regime: Regime
    block_size: int
    shift: int
    verifies: bool
    mask_id: int
    end_ids: tuple[int, ...]
    prefix_id: int
    suffix_id: int
    prefix_tokens: int
    suffix_tokens: int

    @classmethod
    def read(cls, folder: Path, tokenizer: Tokenizer) -> ModelSpec:
        """Read `config.json`; raises ModelError where it is missing, damaged or asks for what Remask cannot run."""
        config = _read_config(folder / "config.json")
        _check_architecture(config)
        own = config.get("remask")
        if not isinstance(own, Mapping):
            raise ModelError(
                f"The checkpoint in {folder} does not say how it denoises.",
                advice='Its config.json needs a "remask" section (see engine/weights/config.json).',
            )
        try:
            return cls(
                name=str(own["name"]),
                shape=_shape(config),
                regime=Regime(own["regime"]),
                block_size=_positive(own, "block_size"),
                shift=int(own["shift"]),
                verifies=bool(own["verifies"]),
                mask_id=_token(tokenizer, own["mask_token"]),
                end_ids=tuple(_token(tokenizer, t) for t in own["end_tokens"]),
                prefix_id=_token(tokenizer, own["prefix_token"]),
                suffix_id=_token(tokenizer, own["suffix_token"]),
                prefix_tokens=_positive(own, "prefix_tokens"),
                suffix_tokens=_positive(own, "suffix_tokens"),
            )
        except KeyError as error:
            raise ModelError(f"The config.json in {folder} lacks {error.args[0]!r}.") from None
        except (TypeError, ValueError) as error:
            raise ModelError(f"The config.json in {folder} has a wrong value: {error}.") from None


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"There is no checkpoint in {path.parent}: {path.name} is missing.") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"The file {path} cannot be read: {error}.") from None
    if not isinstance(config, dict):
        raise ModelError(f"The file {path} is not a JSON object.")
    return config


def _check_architecture(config: Mapping[str, Any]) -> None:
    if "auto_map" in config:
        raise ModelError(
            "The checkpoint asks to run code of its own, and Remask never does that.",
            advice="Use a checkpoint of a family that Remask knows.",
        )
    named = list(config.get("architectures") or ["none"])
    if named[0] not in ARCHITECTURES:
        raise ModelError(f"Remask cannot run the architecture {named[0]} (it knows {', '.join(ARCHITECTURES)}).")


def _shape(config: Mapping[str, Any]) -> Shape:
    heads = _positive(config, "num_attention_heads")
    width = _positive(config, "hidden_size")
    shape = Shape(
        layers=_positive(config, "num_hidden_layers"),
        width=width,
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or width // heads),
        mlp_width=_positive(config, "intermediate_size"),
        vocab=_positive(config, "vocab_size"),
        max_positions=_positive(config, "max_position_embeddings"),
        rope_theta=float(config["rope_theta"]),
        norm_eps=float(config["rms_norm_eps"]),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        attention_bias=bool(config.get("attention_bias", False)),
    )
    if shape.heads % shape.kv_heads:
        raise ValueError(f"{shape.heads} heads cannot share {shape.kv_heads} KV heads")
    return shape


def _positive(values: Mapping[str, Any], name: str) -> int:
    value = values[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is a whole number above 0, not {value!r}")
    return value


def _token(tokenizer: Tokenizer, text: str) -> int:
    found = tokenizer.token_to_id(text)
    if found is None:
        raise ModelError(f"The checkpoint's tokenizer has no token {text!r}.")
    return int(found)
