"""What a training run does, as numbers: saved beside its checkpoints, so that a run can be repeated and resumed.

Knows no data, no model and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from remask.contract.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Sizes, rates and weights of a run. Raises InputError for values that make no sense.

    rank: of the LoRA matrices, 0 for full training. rows: packed rows a micro-batch; accumulate: micro-batches a
    step. lr: AdamW's rate after `warmup` steps, constant until the last `decay` share of the run, then linear to 0
    (warm-up, stable, decay: Hu et al. 2024, MiniCPM). causal_rows: positions a micro-batch whose causal prediction
    is scored: those of middles first, then a draw of the prefixes; 0 for all. canvases: canvases a row, in pairs.
    full: share of the pairs that are fully masked; the others mask between 15 and 95 % and its complement
    (Fast-dLLM v2, Wu et al. 2025). wrong: share of visible canvas tokens that are replaced. canvas_weight: of the
    denoising loss beside the causal one. distil: share of the denoising loss that is the divergence from the model's
    own causal prediction. reach: the canvas position whose weight is 1/e.
    """

    seed: int = 0
    rank: int = 64
    rows: int = 4
    accumulate: int = 1
    lr: float = 7e-4
    warmup: int = 20
    decay: float = 0.25
    clip: float = 1.0
    block: int = 8
    canvases: int = 8
    full: float = 0.5
    wrong: float = 0.1
    causal_rows: int = 1024
    prefix_weight: float = 0.5
    middle_weight: float = 2.0
    canvas_weight: float = 0.7
    distil: float = 0.5
    reach: float = 4.0

    def __post_init__(self) -> None:
        for name, low, high in _BOUNDS:
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"A training recipe's {name} is {low:g} to {high:g}, not {value:g}.")
        if self.canvases % 2:
            raise InputError(f"A training recipe's canvases come in pairs, so {self.canvases} is not possible.")

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """Inverse of `to_dict`. Raises InputError for unknown names or wrong types."""
        known = {f.name: type(f.default) for f in fields(cls)}
        wrong = [n for n, v in values.items() if n not in known or not isinstance(v, (int, known[n]))]
        if wrong:
            raise InputError(f"A training recipe has no {wrong[0]!r} of that kind.")
        return cls(**values)


_BOUNDS = (
    ("seed", 0, 2**31 - 1),  # NumPy takes no negative one
    ("rank", 0, 1024),
    ("rows", 1, 4096),
    ("accumulate", 1, 4096),
    ("lr", 0.0, 1.0),
    ("warmup", 0, 10**6),
    ("decay", 0.0, 1.0),
    ("clip", 1e-6, 1e6),
    ("block", 2, 256),
    ("canvases", 0, 256),
    ("full", 0.0, 1.0),
    ("wrong", 0.0, 0.9),
    ("causal_rows", 0, 10**7),
    ("prefix_weight", 0.0, 100.0),
    ("middle_weight", 0.0, 100.0),
    ("canvas_weight", 0.0, 100.0),
    ("distil", 0.0, 1.0),
    ("reach", 0.1, 1e6),
)
