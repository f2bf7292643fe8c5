"""A real transformer with tiny random weights and a byte tokenizer: engine tests in milliseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from remask.engine.models.checkpoint import expected_tensors
from remask.engine.models.model import Model
from remask.engine.models.passes import Best
from remask.engine.models.spec import ModelSpec, Regime, Shape
from remask.engine.models.transformer import Transformer

END, SUFFIX, PREFIX, MASK = 256, 257, 258, 259
VOCAB = 260

SHAPE = Shape(
    layers=2,
    width=32,
    heads=4,
    kv_heads=2,
    head_dim=8,
    mlp_width=48,
    vocab=VOCAB,
    max_positions=2048,
    rope_theta=10_000.0,
    norm_eps=1e-5,
    tied_embeddings=True,
)

SPEC = ModelSpec(
    name="tiny",
    shape=SHAPE,
    regime=Regime.CAUSAL,
    block_size=4,
    shift=1,
    verifies=True,
    mask_id=MASK,
    end_ids=(END,),
    prefix_id=PREFIX,
    suffix_id=SUFFIX,
    prefix_tokens=200,
    suffix_tokens=80,
)


@dataclass
class Encoding:
    ids: list[int]


class ByteTokenizer:
    """One token a byte; the four marks lie behind the bytes."""

    def encode(self, text: str, add_special_tokens: bool = False) -> Encoding:
        return Encoding(list(text.encode("utf-8")))

    def decode(self, tokens: list[int], skip_special_tokens: bool = True) -> str:
        return bytes(t for t in tokens if t < 256).decode("utf-8", "replace")

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        return VOCAB


def random_weights(shape: Shape = SHAPE, seed: int = 0, scale: float = 1.0) -> dict[str, torch.Tensor]:
    """Weights large enough that the argmax is rarely a near tie."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.ones(size)
        if len(size) == 1
        else torch.randn(size, generator=generator) * scale / math.sqrt(size[-1]) * (4.0 if "embed" in name else 1.0)
        for name, size in expected_tensors(shape).items()
    }


def tiny_model(seed: int = 0, spec: ModelSpec = SPEC) -> Model:
    transformer = Transformer(spec.shape, random_weights(spec.shape, seed))
    return Model(spec, ByteTokenizer(), transformer, f"tiny-{seed}")  # type: ignore[arg-type]


@dataclass
class ScriptedTransformer:
    """Writes a fixed text whatever it reads: the row of position i predicts `script[i + 1 - start]`.

    `canvas_errors` are offsets into the script that the canvas gets wrong (and is just as sure of), so that
    drafts and the causal pass disagree there. `doubts` are offsets whose canvas probability is low.
    """

    script: list[int]
    start: int
    canvas_errors: frozenset[int] = frozenset()
    doubts: frozenset[int] = frozenset()
    shape: Shape = SHAPE
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32
    passes: list[tuple[str, int]] = field(default_factory=list)

    def new_cache(self):
        from remask.engine.models.kv import KVCache

        return KVCache(SHAPE, dtype=self.dtype, device=self.device)

    def forward(self, step, cache):
        count = len(step.tokens)
        cache.reserve(count)
        canvas = step.mask is None and count > 1
        self.passes.append(("canvas" if canvas else "causal", count))
        # hidden: [T, 2] = the offset predicted, and 1 for a canvas row
        offsets = step.positions + 1 - self.start
        return torch.stack([offsets.float(), torch.full((count,), float(canvas))], dim=1)

    def logits(self, hidden):
        out = torch.zeros(len(hidden), VOCAB)
        for row, (offset, canvas) in enumerate(hidden.tolist()):
            at = int(offset)
            token = self.script[at] if 0 <= at < len(self.script) else END
            if canvas and at in self.canvas_errors:
                out[row, token] = 10.0  # the right one comes second
                token = (token + 1) % 256
            out[row, token] = 1.0 if canvas and at in self.doubts else 20.0
        return out

    def best(self, hidden, never, count=1):
        return Best.of(self.logits(hidden).index_fill_(-1, never, -torch.inf), count)


def scripted_model(text: str, prompt_length: int, **faults: frozenset[int]) -> Model:
    script = [*text.encode("utf-8"), END]
    return Model(SPEC, ByteTokenizer(), ScriptedTransformer(script, prompt_length, **faults), "scripted")  # type: ignore[arg-type]
