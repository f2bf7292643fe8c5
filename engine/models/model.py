"""A loaded model: its spec, its tokenizer and its transformer, on a device and in a precision chosen for it.

Knows how to turn text into tokens and back; knows no prompt and no decoding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from remask.contract.errors import InputError, ModelError
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run
from remask.engine.models.adapter import adapters_over, read_merged
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.choice import find_adapter, find_model
from remask.engine.models.drafting import DraftHead, find_draft_head
from remask.engine.models.gemma import load_gemma
from remask.engine.models.matrix import EIGHT_BITS, FP8
from remask.engine.models.native import NativeTransformer, native_library
from remask.engine.models.processor import has_bfloat16, set_threads
from remask.engine.models.read_spec import read_spec
from remask.engine.models.shards import fingerprint, holds_int8
from remask.engine.models.spec import ModelSpec, Regime
from remask.engine.models.transformer import Transformer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8, "fp8": FP8}
FP8_FROM = (8, 9)  # compute capability that knows 8-bit floats


@dataclass(frozen=True, slots=True)
class Model:
    """What the decoder works with. `fingerprint` names these very weights in this precision.

    `draft_head` drafts for them, where there is one; it changes nothing but speed.
    """

    spec: ModelSpec
    tokenizer: Tokenizer
    transformer: Transformer
    fingerprint: str
    draft_head: DraftHead | None = None

    @classmethod
    def load(
        cls,
        folder: Path | None = None,
        *,
        adapter: Path | None = None,
        draft_head: Path | None = None,
        device: str = "auto",
        dtype: str = "auto",
    ) -> Model:
        """Load a checkpoint (see `find_model`), by default the chosen one, with its adapters merged into it.

        `draft_head`: a file instead of that beside the adapter or the checkpoint. Raises ModelError or InputError.
        """
        named = find_adapter(adapter, folder)
        folder = find_model(folder)
        where = choose_device(device)
        tokenizer = read_tokenizer(folder)
        spec = read_spec(folder, tokenizer)
        adapters = adapters_over(folder, named)
        if tokenizer.get_vocab_size(with_added_tokens=True) > spec.shape.vocab:
            raise ModelError(f"The tokenizer in {folder} has more tokens than the model's {spec.shape.vocab}.")
        set_threads()
        precision = choose_dtype(dtype, where)
        if dtype == "auto" and where.type == "cpu" and holds_int8(folder) and native_library() is not None:
            precision = torch.int8
        transformer: Transformer
        head: DraftHead | None = None
        if spec.regime is Regime.UNIFORM:
            if precision in EIGHT_BITS:
                raise InputError(f"This checkpoint does not run in {dtype}.", advice="Use bfloat16, or leave it out.")
            if adapters:
                raise InputError("Remask merges no adapters into checkpoints of this family.")
            transformer = load_gemma(folder, dtype=precision, device=where)
        else:
            kind = NativeTransformer if precision == torch.int8 else Transformer
            kind = AcceleratedTransformer if kernels_run(where) else kind
            weights = read_merged(folder, spec.shape, adapters, dtype=precision, device=where)
            transformer = kind(spec.shape, weights)
            if found := find_draft_head(draft_head, [*(a.folder for a in reversed(adapters)), folder]):
                head = DraftHead.load(found, spec.shape, weights) if spec.verifies else None
        spec = replace(spec, draft_head=head is not None)
        for one in adapters:
            spec = replace(spec, name=one.title(spec.name))
        files = "-".join(fingerprint(place) for place in [folder, *(a.folder for a in adapters)])
        return cls(spec, tokenizer, transformer, f"{files}-{transformer.dtype}-{where.type}", head)

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
    """`auto` takes bfloat16 where the processor multiplies it itself, float32 elsewhere. Raises InputError.

    Int8 rows stay so under `auto` where the C pass is at hand: see `Model.load`.
    """
    if wanted in ("int8", "fp8"):
        _refuse_eight_bits(wanted, device)
    if wanted in DTYPES:
        return DTYPES[wanted]
    if wanted != "auto":
        raise InputError(f"The precision is one of auto, {', '.join(DTYPES)}, not {wanted!r}.")
    return torch.bfloat16 if device.type == "cuda" or has_bfloat16() else torch.float32


def _refuse_eight_bits(wanted: str, device: torch.device) -> None:
    """Raise InputError where weights of 8 bits do not run."""
    if device.type == "cuda" and not kernels_run(device):
        raise InputError(
            f"The precision {wanted} needs Remask's own kernels, which do not run on {device}.",
            advice="Install remask[gpu] where the card is of compute capability 8.0 or newer, or use auto.",
        )
    if wanted == "fp8" and not (device.type == "cuda" and torch.cuda.get_device_capability(device) >= FP8_FROM):
        raise InputError(
            "The precision fp8 needs a card of compute capability 8.9 or newer.", advice="Use int8, or auto."
        )
    if device.type != "cuda" and native_library() is None:
        raise InputError(
            "The precision int8 needs a CPU with integer dot products and a C compiler, or a card.",
            advice="Install gcc or clang, or use auto.",
        )
