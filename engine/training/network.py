"""The transformer that learns: the same formulas as `engine.models.transformer`, over batches and with gradients.

Trainable weights are float32 and used in `dtype`; frozen ones are held in `dtype`. Knows no data and no loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.engine.models.spec import Shape

LORA_A, LORA_B = ".lora_A.weight", ".lora_B.weight"  # PEFT's names behind a matrix's own


class Network:
    """Weights by their names in a checkpoint, and a batched forward pass.

    With a `rank` the checkpoint's weights are frozen and pairs of matrices [rank, in] and [out, rank] are learned
    beside every projection (LoRA, Hu et al. 2021; their product is added unscaled). Without, everything is learned.
    """

    def __init__(
        self, shape: Shape, weights: Mapping[str, Tensor], *, rank: int = 0, dtype: torch.dtype, seed: int = 0
    ) -> None:
        self.shape, self.rank, self.dtype = shape, rank, dtype
        self.frozen: dict[str, Tensor] = {}
        self.learned: dict[str, Tensor] = {}
        if rank:
            self.frozen = {name: w.to(dtype) for name, w in weights.items()}
            self.learned = _fresh_pairs(weights, rank, seed)
        else:
            self.learned = {name: w.float().clone().requires_grad_() for name, w in weights.items()}
        exponent = torch.arange(0, shape.head_dim, 2, dtype=torch.float32, device=self.device) / shape.head_dim
        self._frequency = (shape.rope_theta**-exponent).repeat(2)

    @classmethod
    def fixed(cls, shape: Shape, weights: Mapping[str, Tensor], *, dtype: torch.dtype) -> Network:
        """A network that learns nothing: all its weights are held in `dtype`."""
        network = cls(shape, weights, dtype=dtype)
        network.frozen, network.learned = {name: w.to(dtype) for name, w in weights.items()}, {}
        return network

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return next(iter({**self.frozen, **self.learned}.values())).device

    def hidden(
        self, tokens: Tensor, positions: Tensor, bias: Tensor, taps: Sequence[int] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Hidden states [R, T, width] behind the last norm, and those behind the layers named in `taps`.

        tokens, positions: [R, T] int64. bias: [R, 1, T, T] in `dtype`, added to the attention scores.
        """
        angle = positions[:, None, :, None] * self._frequency  # [R, 1, T, head_dim]
        cos, sin = angle.cos().to(self.dtype), angle.sin().to(self.dtype)
        x = F.embedding(tokens, self.weight("model.embed_tokens.weight"))
        tapped = []
        for index in range(self.shape.layers):
            x = self._layer(x, f"model.layers.{index}.", cos, sin, bias)
            if index in taps:
                tapped.append(x)
        return self._norm(x, "model.norm.weight"), tapped

    def logits(self, hidden: Tensor) -> Tensor:
        """[N, width] -> [N, vocab] in `dtype`."""
        tied = self.shape.tied_embeddings
        return F.linear(hidden, self.weight("model.embed_tokens.weight" if tied else "lm_head.weight"))

    def weight(self, name: str) -> Tensor:
        """The checkpoint's weight of that name, ready to compute with."""
        return self.frozen[name] if name in self.frozen else self.learned[name].to(self.dtype)

    def _layer(self, x: Tensor, at: str, cos: Tensor, sin: Tensor, bias: Tensor) -> Tensor:
        x = x + self._attend(self._norm(x, at + "input_layernorm.weight"), at + "self_attn.", cos, sin, bias)
        normed = self._norm(x, at + "post_attention_layernorm.weight")
        gated = F.silu(self._project(normed, at + "mlp.gate_proj")) * self._project(normed, at + "mlp.up_proj")
        return x + self._project(gated, at + "mlp.down_proj")

    def _attend(self, x: Tensor, at: str, cos: Tensor, sin: Tensor, bias: Tensor) -> Tensor:
        s, (rows, count, _) = self.shape, x.shape
        q = self._heads(self._project(x, at + "q_proj"), s.heads, at + "q_norm.weight")
        k = self._heads(self._project(x, at + "k_proj"), s.kv_heads, at + "k_norm.weight")
        v = self._project(x, at + "v_proj").view(rows, count, s.kv_heads, s.head_dim).transpose(1, 2)
        q, k = _rotate(q, cos, sin) * s.head_dim**-0.5, _rotate(k, cos, sin)
        # Products and a softmax: on a CPU faster to differentiate than the fused attention (measured: 1.7 times).
        q = q.reshape(rows, s.kv_heads, -1, s.head_dim)  # query heads that share a KV head as rows of one product
        scores = (q @ k.transpose(-1, -2)).view(rows, s.heads, count, count) + bias
        mixed = scores.softmax(-1).view(rows, s.kv_heads, -1, count) @ v
        mixed = mixed.view(rows, s.heads, count, s.head_dim).transpose(1, 2).reshape(rows, count, -1)
        return self._project(mixed, at + "o_proj")

    def _heads(self, x: Tensor, heads: int, norm: str) -> Tensor:
        """[R, T, heads * head_dim] -> [R, heads, T, head_dim], normed where the family norms queries and keys."""
        x = x.view(x.shape[0], x.shape[1], heads, self.shape.head_dim)
        return (self._norm(x, norm) if self.shape.qk_norm else x).transpose(1, 2)

    def _project(self, x: Tensor, name: str) -> Tensor:
        bias = f"{name}.bias"
        known = bias in self.frozen or bias in self.learned
        y = F.linear(x, self.weight(f"{name}.weight"), self.weight(bias) if known else None)
        if not self.rank:
            return y
        a, b = self.learned[name + LORA_A].to(self.dtype), self.learned[name + LORA_B].to(self.dtype)
        return y + F.linear(F.linear(x, a), b)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight(name), self.shape.norm_eps)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [..., T, head_dim], the two halves of a head as pairs (Su et al. 2021)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _fresh_pairs(weights: Mapping[str, Tensor], rank: int, seed: int) -> dict[str, Tensor]:
    """A pair of matrices for every projection: a random one and a zero one, so that training starts at the base."""
    generator = torch.Generator().manual_seed(seed)
    pairs = {}
    for name, weight in weights.items():
        if name.endswith("_proj.weight"):
            out, width = weight.shape
            stem = name.removesuffix(".weight")
            a = torch.randn(rank, width, generator=generator) / width**0.5
            pairs[stem + LORA_A] = a.to(weight.device).requires_grad_()
            pairs[stem + LORA_B] = torch.zeros(out, rank, device=weight.device).requires_grad_()
    return pairs
