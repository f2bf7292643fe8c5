"""A light head that drafts tokens one after another from the last hidden state, for the whole model to verify.

Recurrent: its state starts as the hidden state of the newest token that was read, takes in one token a step, and is
scored against the embeddings of the most frequent tokens only. It keeps nothing between drafts, so an edit cannot
leave it behind. Sources: ReDrafter (Zhang et al. 2024), Hydra (Ankner et al. 2024); the short list of tokens as in
FR-Spec (Zhao et al. 2025). Knows no text and no verification.

With rms(v) = v / sqrt(mean(v^2)), E the model's embeddings and L the short list's rows of its output matrix:

    s_0 = rms(h)
    a, b, c = A rms(s_k) + B rms(E[token_k]), cut in three
    s_{k+1} = s_k + c + C (silu(a) * b)
    scores = L (norm * rms(s_{k+1}))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import ModelError

FILE = "draft_head.safetensors"
FORMAT = "2"
EPS = 1e-6


def shapes(width: int, inner: int, listed: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a head's tensors: `tokens` int64, the others floating point."""
    return {
        "tokens": (listed,),
        "state": (2 * inner + width, width),
        "input": (2 * inner + width, width),
        "output": (width, inner),
        "norm": (width,),
    }


def rms(x: Tensor) -> Tensor:
    """X / sqrt(mean(x^2)) over the last dimension."""
    return F.rms_norm(x, (x.shape[-1],), eps=EPS)


def take_in(embedded: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """What a token with that embedding [..., width] brings: [..., 2 * inner + width]; the same wherever it stands."""
    return F.linear(rms(embedded), weights["input"])


def advance(state: Tensor, taken: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """The state [..., width] after a token of which `taken` [..., 2 * inner + width] was taken in."""
    width = state.shape[-1]
    parts = F.linear(rms(state), weights["state"]) + taken
    inner = (parts.shape[-1] - width) // 2
    a, b, c = parts.split([inner, inner, width], dim=-1)
    after: Tensor = state + c + F.linear(F.silu(a) * b, weights["output"])
    return after


def readout(state: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """What is multiplied with the short list's rows: [..., width]."""
    return rms(state) * weights["norm"]


def read_head(path: Path, width: int, vocab: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    """A head's tensors in float32 and its metadata. Raises ModelError where it is damaged or does not fit."""
    try:
        with safe_open(str(path), framework="pt", backend="pread") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            metadata = dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"The draft head {path} is damaged ({error}).", advice="Remove it, or make it again."
        ) from None
    inner = tensors["output"].shape[1] if "output" in tensors and tensors["output"].ndim == 2 else 0
    listed = len(tensors["tokens"]) if "tokens" in tensors and tensors["tokens"].ndim == 1 else 0
    expected = shapes(width, inner, listed)
    fits = metadata.get("format") == FORMAT and {n: tuple(t.shape) for n, t in tensors.items()} == expected
    if not fits or not listed or not inner:
        raise ModelError(f"The draft head {path} belongs to another model or version.", advice="Make it again.")
    tokens = tensors.pop("tokens")
    if tokens.dtype != torch.int64 or int(tokens.min()) < 0 or int(tokens.max()) >= vocab:
        raise ModelError(f"The draft head {path} lists tokens that the model does not have.")
    return {"tokens": tokens} | {n: t.float() for n, t in tensors.items()}, metadata


def metadata_of(facts: Mapping[str, object]) -> dict[str, str]:
    """What is kept beside the tensors: the format, and facts of the training as JSON."""
    return {"format": FORMAT, "facts": json.dumps(dict(facts))}
