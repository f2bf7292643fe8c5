"""The plain pass: the transformer as first written, one product a matrix, kept as a yardstick for the fast one.

`remask bench pass --baseline` times it beside `models.transformer` in the same run, and tests compare the two.
Knows nothing that the fast pass knows about processors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.engine.models.kv import KVCache
from remask.engine.models.passes import Pass
from remask.engine.models.spec import Shape
from remask.engine.models.transformer import REFINED


@dataclass(frozen=True, slots=True)
class PlainLayer:
    """Weights of one layer, each [out, in] (norms: [width] or [head_dim], biases: [out]); None what the model lacks."""

    attention_norm: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    o: Tensor
    mlp_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor
    q_bias: Tensor | None = None
    k_bias: Tensor | None = None
    v_bias: Tensor | None = None
    o_bias: Tensor | None = None
    q_norm: Tensor | None = None
    k_norm: Tensor | None = None


class PlainTransformer:
    """Weights and the forward pass; stateless between passes but for the caller's KV cache."""

    def __init__(self, shape: Shape, weights: Mapping[str, Tensor]) -> None:
        self.shape = shape
        self._embedding = weights["model.embed_tokens.weight"]  # [vocab, width]
        self._head = weights.get("lm_head.weight", self._embedding)  # [vocab, width]
        self._final_norm = weights["model.norm.weight"]
        self._layers = [_layer(weights, i) for i in range(shape.layers)]
        exponent = torch.arange(0, shape.head_dim, 2, device=self.device, dtype=torch.float32) / shape.head_dim
        self._frequency = (shape.rope_theta**-exponent).repeat(2)  # [head_dim] float32, the halves alike

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self._embedding.device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights are held in."""
        return self._embedding.dtype

    def new_cache(self) -> KVCache:
        """An empty KV cache that fits this model."""
        return KVCache(self.shape, dtype=self.dtype, device=self.device)

    @torch.inference_mode()
    def forward(self, step: Pass, cache: KVCache) -> Tensor:
        """Run one pass behind the cache's valid entries; returns hidden states [T, width].

        The new entries lie in the cache but are not valid until `cache.advance`.
        """
        cache.reserve(len(step.tokens))
        mask = self._attention_mask(step, cache.length)
        angle = step.positions[:, None, None] * self._frequency  # [T, 1, head_dim] float32
        cos, sin = angle.cos().to(self.dtype), angle.sin().to(self.dtype)
        x = self._embedding[step.tokens]  # [T, width]
        for index, layer in enumerate(self._layers):
            normed = rms_norm(x, layer.attention_norm, self.shape.norm_eps)
            x = x + self._attend(normed, layer, index, cos, sin, mask, cache)
            normed = rms_norm(x, layer.mlp_norm, self.shape.norm_eps)
            x = x + F.linear(F.silu(F.linear(normed, layer.gate)) * F.linear(normed, layer.up), layer.down)
        return x

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary for some rows: [R, width] -> [R, vocab] float32."""
        normed = rms_norm(hidden, self._final_norm, self.shape.norm_eps)
        scores = F.linear(normed, self._head).float()
        if self.dtype == torch.float32:
            return scores
        # 16 bits cannot tell the best tokens apart (steps of 1/16 at 16): compute those few again in float32.
        best = scores.topk(min(REFINED, scores.shape[-1]), dim=-1).indices  # [R, REFINED]
        exact = torch.einsum("rkw,rw->rk", self._head[best].float(), normed.float())
        return scores.scatter_(-1, best, exact)

    def _attend(
        self, x: Tensor, layer: PlainLayer, index: int, cos: Tensor, sin: Tensor, mask: Tensor | None, cache: KVCache
    ) -> Tensor:
        s, count = self.shape, x.shape[0]
        q = F.linear(x, layer.q, layer.q_bias).view(count, s.heads, s.head_dim)
        k = F.linear(x, layer.k, layer.k_bias).view(count, s.kv_heads, s.head_dim)
        v = F.linear(x, layer.v, layer.v_bias).view(count, s.kv_heads, s.head_dim)
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = rms_norm(q, layer.q_norm, s.norm_eps), rms_norm(k, layer.k_norm, s.norm_eps)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        keys, values = cache.write(index, k.transpose(0, 1), v.transpose(0, 1))  # [kv_heads, length + T, head_dim]
        # Query heads that share a KV head become rows of one product: no repeated keys.
        q = q.view(count, s.kv_heads, -1, s.head_dim).permute(1, 2, 0, 3).reshape(s.kv_heads, -1, s.head_dim)
        mixed = F.scaled_dot_product_attention(q[None], keys[None], values[None], attn_mask=mask)[0]
        mixed = mixed.view(s.kv_heads, -1, count, s.head_dim).permute(2, 0, 1, 3)  # [T, kv_heads, group, head_dim]
        return F.linear(mixed.reshape(count, -1), layer.o, layer.o_bias)

    def _attention_mask(self, step: Pass, context: int) -> Tensor | None:
        """[group * T, context + T] bool, or None where everything is visible."""
        if step.mask is None:
            return None
        visible = step.mask.new_ones(len(step.tokens), context + len(step.tokens) - step.mask.shape[1])
        return torch.cat([visible, step.mask], dim=1).repeat(self.shape.heads // self.shape.kv_heads, 1)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """X / sqrt(mean(x^2) + eps) * weight over the last dimension, computed in float32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [T, heads, head_dim] with the two halves of a head as pairs."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _layer(weights: Mapping[str, Tensor], index: int) -> PlainLayer:
    at = f"model.layers.{index}."
    return PlainLayer(
        attention_norm=weights[at + "input_layernorm.weight"],
        q=weights[at + "self_attn.q_proj.weight"],
        k=weights[at + "self_attn.k_proj.weight"],
        v=weights[at + "self_attn.v_proj.weight"],
        o=weights[at + "self_attn.o_proj.weight"],
        mlp_norm=weights[at + "post_attention_layernorm.weight"],
        gate=weights[at + "mlp.gate_proj.weight"],
        up=weights[at + "mlp.up_proj.weight"],
        down=weights[at + "mlp.down_proj.weight"],
        q_bias=weights.get(at + "self_attn.q_proj.bias"),
        k_bias=weights.get(at + "self_attn.k_proj.bias"),
        v_bias=weights.get(at + "self_attn.v_proj.bias"),
        o_bias=weights.get(at + "self_attn.o_proj.bias"),
        q_norm=weights.get(at + "self_attn.q_norm.weight"),
        k_norm=weights.get(at + "self_attn.k_norm.weight"),
    )
