"""A loaded model: its spec, its tokenizer and its transformer, on a device and in a precision chosen for it.

Knows how to turn text into tokens and back; knows no prompt and no decoding.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer

from remask.contract.errors import InputError, ModelError
from remask.engine.models.checkpoint import fingerprint, read_tokenizer, read_weights
from remask.engine.models.choice import find_model
from remask.engine.models.families import read_spec
from remask.engine.models.gemma import load_gemma
from remask.engine.models.spec import ModelSpec, Regime
from remask.engine.models.transformer import Transformer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Model:
    """What the decoder works with. `fingerprint` names these very weights in this precision."""

    spec: ModelSpec
    tokenizer: Tokenizer
    transformer: Transformer
    fingerprint: str

    @classmethod
    def load(cls, folder: Path | None = None, *, device: str = "auto", dtype: str = "auto") -> Model:
        """Load a checkpoint (see `find_model`), by default the chosen one. Raises ModelError or InputError."""
        folder = find_model(folder)
        where = choose_device(device)
        tokenizer = read_tokenizer(folder)
        spec = read_spec(folder, tokenizer)
        if tokenizer.get_vocab_size(with_added_tokens=True) > spec.shape.vocab:
            raise ModelError(f"The tokenizer in {folder} has more tokens than the model's {spec.shape.vocab}.")
        precision = choose_dtype(dtype, where)
        transformer: Transformer
        if spec.regime is Regime.UNIFORM:
            transformer = load_gemma(folder, dtype=precision, device=where)
        else:
            transformer = Transformer(spec.shape, read_weights(folder, spec.shape, dtype=precision, device=where))
        return cls(spec, tokenizer, transformer, f"{fingerprint(folder)}-{transformer.dtype}-{where.type}")

    def encode(self, text: str) -> list[int]:
        """Tokens of source text; the names of special tokens in it are plain text."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: list[int]) -> str:
        """Text of tokens; an unfinished UTF-8 character at the end is held back."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True)).rstrip("\ufffd")


def choose_device(wanted: str) -> torch.device:
    """`auto` takes a GPU where there is one. Raises InputError for a device that is not there."""
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError(wanted)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise InputError(f"The device {wanted!r} is not available here.", advice="Use cpu, or leave it out.") from None
    return device


def choose_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """`auto` takes bfloat16 where the processor multiplies it itself, float32 elsewhere. Raises InputError."""
    if wanted in DTYPES:
        return DTYPES[wanted]
    if wanted != "auto":
        raise InputError(f"The precision is one of auto, {', '.join(DTYPES)}, not {wanted!r}.")
    return torch.bfloat16 if device.type == "cuda" or _cpu_has_bfloat16() else torch.float32


def _cpu_has_bfloat16() -> bool:
    """Elsewhere bfloat16 is emulated and slower than float32."""
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
