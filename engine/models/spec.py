"""What a checkpoint is: its shape, how it attends, and which tokens mean what.

Filled from the checkpoint's own files by `families`, never from a family's habits alone: the same token
id is a mask in one family and a tag in another. Knows nothing of weights in memory or of decoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Regime(StrEnum):
    """How tokens attend to each other, which decides how far KV survives an edit at token p."""

    CAUSAL = "causal"  # causal context, bidirectional canvas: valid up to p
    STRICT_CAUSAL = "strict_causal"  # resolved tokens first, then masks, causal throughout: valid up to p
    BLOCK_CAUSAL = "block_causal"  # both ways inside aligned blocks of B: valid up to floor(p / B) * B
    BIDIRECTIONAL = "bidirectional"  # everything sees everything: nothing stays valid
    UNIFORM = "uniform"  # causal context, bidirectional canvas of random tokens instead of masks


class Layout(StrEnum):
    """How the text around a hole becomes a prompt."""

    SUFFIX_PREFIX = "suffix_prefix"  # [suffix token] suffix [prefix token] prefix: typing appends
    FIM = "fim"  # [prefix token] prefix [suffix token] suffix [middle token]
    HOLE = "hole"  # prefix, canvas, suffix, as they stand: for bidirectional checkpoints
    CHAT = "chat"  # an instruction to fill the hole; the answer is cut out of the reply


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
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: bool = False
    experts: int = 0
    experts_each: int = 0  # of them, that one token is read by
    expert_width: int = 0

    @property
    def kv_values_per_token(self) -> int:
        """Numbers that one token adds to the KV cache."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    @property
    def parameters(self) -> int:
        """Weights of the model, biases and norms left out."""
        attention = self.width * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        embeddings = self.vocab * self.width * (1 if self.tied_embeddings else 2)
        return self.layers * (attention + 3 * self.width * self.mlp_width) + embeddings + self.expert_parameters

    @property
    def expert_parameters(self) -> int:
        """Those of them that are in experts."""
        return self.layers * 3 * self.width * self.expert_width * self.experts


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformNoise:
    """How a canvas of random tokens is denoised: DiffusionGemma's generation settings, with its defaults.

    At step n of `steps` (counted down) the temperature is t_min + (t_max - t_min) * n / steps. A step accepts
    the surest tokens whose entropies (nats) sum to `entropy_bound` at most, the largest left out. Denoising ends
    when the argmax did not change for `stable_steps` and the mean entropy is below `confident_below`.
    """

    steps: int = 48
    t_min: float = 0.4
    t_max: float = 0.8
    entropy_bound: float = 0.1
    stable_steps: int = 1
    confident_below: float = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Everything that differs between checkpoints.

    `shift`: 1 where the logits of a position predict the next one, 0 where a masked position predicts
    itself. `verifies`: the weights were trained with an autoregressive loss, so the causal reading may judge
    a canvas. `mask_id` is -1 where the canvas is random tokens. `sub_block`: positions of a block that are
    resolved before the next ones are looked at, 0 for all at once. `expand_id` and `delete_id`: states that
    make a canvas longer or shorter (DreamOn), -1 where there are none. `prefix_tokens` and `suffix_tokens`
    bound the prompt's windows, `context_tokens` what is read of other files. `draft_head`: one drafts for it.
    """

    name: str
    family: str = "remask"
    shape: Shape
    regime: Regime
    block_size: int
    shift: int
    verifies: bool
    mask_id: int
    end_ids: tuple[int, ...]
    layout: Layout = Layout.SUFFIX_PREFIX
    prefix_id: int = -1
    suffix_id: int = -1
    middle_id: int = -1
    expand_id: int = -1
    delete_id: int = -1
    sub_block: int = 0
    policy: str = "default"
    draft_head: bool = False
    uniform: UniformNoise | None = None
    prefix_tokens: int
    suffix_tokens: int
    context_tokens: int = 0

    @property
    def never(self) -> tuple[int, ...]:
        """Tokens that may not be written: the mask and the prompt's own marks."""
        marks = (self.mask_id, self.prefix_id, self.suffix_id, self.middle_id)
        return tuple(sorted({t for t in marks if t >= 0}))
