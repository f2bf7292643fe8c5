"""The corrector head: from what the verifying pass knows of a token to the probability that the token is wrong.

It reads the hidden states of the token's own row behind a shallow, a middle and a deep layer, and four signs that the
scores of the row before give. A pure function of tensors: knows neither passes nor drafts nor what is done about blame.

Sources: token quality read off the model's own states by a light head, PRISM (Kim et al. 2025); gated skips from
several depths, Remask's own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import ModelError, StorageError

FORMAT = "1"
FILE = "corrector.safetensors"
SIGNS = 4  # numbers a token that `signs_of` gives
EPS = 1e-6
LOWEST, SCALE = -20.0, 10.0  # log-probabilities are cut at one, and divided by the other
ANOTHER = "Train one for this model with 'remask train corrector'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrector:
    """A head and what it was made for.

    parts: see `part_shapes`, float32. taps: the layers, from 0, behind which the states are taken. threshold: wrong
    enough to be written again in a draft. strict: wrong enough to be doubted in code that a person wrote. base: the
    digest of the weights it was trained on. facts: how it was trained and what it gave, as JSON values.
    """

    parts: Mapping[str, Tensor]
    taps: tuple[int, ...]
    threshold: float
    strict: float
    base: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @torch.inference_mode()
    def wrong(self, states: Tensor, signs: Tensor) -> Tensor:
        """The probability [T] float32 that each token is wrong; states [T, K, width] of any float, signs [T, 4]."""
        return score(self.parts, states, signs).sigmoid()


def default_taps(layers: int) -> tuple[int, ...]:
    """Layers after a third, two thirds and the whole depth; fewer where there are fewer."""
    return tuple(sorted({max(0, layers // 3 - 1), max(0, 2 * layers // 3 - 1), layers - 1}))


def part_shapes(taps: int, width: int, inner: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a head's tensors: K taps of `width` numbers, `inner` numbers in between."""
    return {
        "skip.weight": (taps, inner, width),
        "skip.bias": (taps, inner),
        "gate.weight": (taps, width),
        "gate.bias": (taps,),
        "signs.weight": (inner, SIGNS),
        "signs.bias": (inner,),
        "out.weight": (inner + SIGNS,),
        "out.bias": (),
    }


def score(parts: Mapping[str, Tensor], states: Tensor, signs: Tensor) -> Tensor:
    """Log-odds [T] float32 that tokens are wrong.

    n_k = h_k / rms(h_k);  g = sigmoid(G n_K + c);  u = silu(sum_k g_k (P_k n_k + b_k) + S s + d);  o . [u, s] + e
    """
    return verdict(parts, normalise(states), signs)


def verdict(parts: Mapping[str, Tensor], normed: Tensor, signs: Tensor) -> Tensor:
    """`score` of states [T, K, width] that are normalised already."""
    gates = (normed[:, -1] @ parts["gate.weight"].T + parts["gate.bias"]).sigmoid()  # [T, K], from the deepest
    skips = torch.einsum("tkw,kmw->tkm", normed, parts["skip.weight"]) + parts["skip.bias"]
    mixed = (gates[:, :, None] * skips).sum(1) + signs @ parts["signs.weight"].T + parts["signs.bias"]
    return torch.cat([F.silu(mixed), signs], 1) @ parts["out.weight"] + parts["out.bias"]


def normalise(states: Tensor) -> Tensor:
    """States divided by their root mean square, float32."""
    return F.rms_norm(states.float(), (states.shape[-1],), None, EPS)


def signs_of(scores: Tensor, tokens: Tensor) -> Tensor:
    """[T, 4] float32 of the scores [T, vocab] in the rows before, and the tokens [T] that were written.

    Log-probability of the token, entropy, log-probability less that of the best other token (both / 10), and whether
    it is the best.
    """
    log_p = scores.float().log_softmax(-1)
    own = log_p.gather(1, tokens[:, None])[:, 0]
    entropy = -(log_p.exp() * log_p.clamp_min(torch.finfo(log_p.dtype).min)).sum(-1)  # tokens out of reach add nothing
    (best, second), places = (t.T for t in log_p.topk(2, dim=-1))
    is_best = places[0] == tokens
    lead = own - torch.where(is_best, second, best)
    cut = [own.clamp_min(LOWEST), entropy, lead.clamp(LOWEST, -LOWEST)]
    return torch.stack([*(value / SCALE for value in cut), is_best.float()], dim=1)


def load_corrector(path: Path, *, base: str, layers: int, width: int, device: torch.device | None = None) -> Corrector:
    """Read a head for the weights with the digest `base` and `layers` layers of `width` numbers.

    Raises ModelError for a file that is damaged, of another format or made for other weights.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts = _read_facts(path, file.metadata() or {})
            if facts["base"] != base:
                raise ModelError(f"The corrector head {path} was made for other weights.", advice=ANOTHER)
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - no dict
            expected = part_shapes(len(facts["taps"]), width, int(facts["inner"]))
            if shapes != expected or facts["width"] != width or not max(facts["taps"]) < layers:
                raise ModelError(f"The corrector head {path} does not fit this model.", advice=ANOTHER)
            parts = {name: file.get_tensor(name).float().to(device) for name in shapes}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The corrector head {path} cannot be read: {error}.", advice=ANOTHER) from None
    if not all(part.isfinite().all() for part in parts.values()):
        raise ModelError(f"The corrector head {path} is damaged: it holds numbers that are none.", advice=ANOTHER)
    return Corrector(
        parts=parts,
        taps=tuple(facts["taps"]),
        threshold=facts["threshold"],
        strict=facts["strict"],
        base=base,
        facts=facts["facts"],
    )


def save_corrector(path: Path, corrector: Corrector) -> None:
    """Write a head, its numbers as float16, under a temporary name, and rename it. Raises StorageError."""
    _, inner, width = corrector.parts["skip.weight"].shape
    metadata = {
        "format": FORMAT,
        "taps": json.dumps(corrector.taps),
        "inner": json.dumps(inner),
        "width": json.dumps(width),
        "threshold": repr(corrector.threshold),
        "strict": repr(corrector.strict),
        "base": corrector.base,
        "facts": json.dumps(dict(corrector.facts)),
    }
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file({n: p.half().contiguous().cpu() for n, p in corrector.parts.items()}, unfinished, metadata)
        os.replace(unfinished, path)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"The head cannot be written to {path}: {error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _read_facts(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """What a file says of itself, checked: taps, inner, width, threshold, strict, base and facts."""
    if metadata.get("format") != FORMAT:
        raise ModelError(f"{path} is no corrector head that this version reads.", advice=ANOTHER)
    try:
        facts: dict[str, Any] = {n: json.loads(metadata[n]) for n in ("taps", "inner", "width", "facts")}
        facts |= {n: float(metadata[n]) for n in ("threshold", "strict")}
        facts["base"] = metadata["base"]
        taps = facts["taps"]
        whole = [*taps, facts["inner"], facts["width"]]
        sound = bool(taps) and all(type(n) is int and n >= 0 for n in whole) and taps == sorted(set(taps))
        sound = sound and isinstance(facts["facts"], dict) and all(0 < facts[n] < 1 for n in ("threshold", "strict"))
    except (KeyError, ValueError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise ModelError(f"The corrector head {path} is damaged: what it says of itself is not sound.", advice=ANOTHER)
    return facts
