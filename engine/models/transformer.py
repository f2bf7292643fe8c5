"""The dense decoder-only transformer that native checkpoints share: LLaMA's layout, flags for what differs.

One flat row of T tokens a pass, any mask among them: causal prompts, bidirectional canvases and several
canvases on one context are all this. Written plainly; knows nothing of prompts, drafts or stopping.

Sources: RMSNorm (Zhang & Sennrich 2019), rotary positions (Su et al. 2021), grouped-query attention
(Ainslie et al. 2023), SwiGLU (Shazeer 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.engine.models.kv import KVCache
from remask.engine.models.matrix import Matrix, below, fused, matrix_of, picked, product, values_of
from remask.engine.models.passes import Best, Confidence, Pass, Taps
from remask.engine.models.spec import Shape

REFINED = 16  # tokens a row whose scores are computed in float32 whatever the weights' precision


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one layer, each [out, in] (norms: [width] or [head_dim], biases: [out]); None what the model lacks.

    Queries, keys and values are one matrix below each other, gate and up another: fewer and larger products.
    """

    attention_norm: Tensor
    qkv: Matrix
    o: Matrix
    mlp_norm: Tensor
    gate_up: Matrix
    down: Matrix
    qkv_bias: Tensor | None = None
    o_bias: Tensor | None = None
    q_norm: Tensor | None = None
    k_norm: Tensor | None = None


class Transformer:
    """Weights and the forward pass; stateless between passes but for the caller's KV cache.

    Matrices may be 8-bit rows with their scales, as `read_weights` gives them; activations are of the norms' dtype.
    steering: vectors [width] that are added to every hidden state behind a layer, by its number from 0.
    """

    def __init__(self, shape: Shape, weights: Mapping[str, Tensor]) -> None:
        self.steering: dict[int, Tensor] = {}
        self.shape = shape
        self._embedding = matrix_of(weights, "model.embed_tokens.weight")  # [vocab, width]
        self._head = matrix_of(weights, "lm_head.weight") if "lm_head.weight" in weights else self._embedding
        self._final_norm = weights["model.norm.weight"]
        self._layers = [_layer(weights, i) for i in range(shape.layers)]
        exponent = torch.arange(0, shape.head_dim, 2, device=self.device, dtype=torch.float32) / shape.head_dim
        self._frequency = shape.rope_theta**-exponent  # [head_dim / 2] float32

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self._final_norm.device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights are held in."""
        return values_of(self._embedding).dtype

    @property
    def activations(self) -> torch.dtype:
        """What hidden states, keys and values are held in."""
        return self._final_norm.dtype

    @property
    def joins(self) -> bool:
        """Whether a pass over several sequences costs less than one after the other."""
        return False

    def new_cache(self) -> KVCache:
        """An empty KV cache that fits this model."""
        return KVCache(self.shape, dtype=self.activations, device=self.device)

    def steer(self, vectors: Mapping[int, Tensor]) -> None:
        """Add vectors [width] behind layers from now on; caches that were written without them are not valid."""
        self.steering = {layer: vector.to(self.device, self.activations) for layer, vector in vectors.items()}

    @torch.inference_mode()
    def forward(self, step: Pass, cache: KVCache, taps: Taps | None = None) -> Tensor:
        """Run one pass behind the cache's valid entries; returns hidden states [T, width], and fills `taps`.

        The new entries lie in the cache but are not valid until `cache.advance`.
        """
        cache.reserve(len(step.tokens))
        mask = self._attention_mask(step, cache)
        turn = self._turn(step.positions)
        x = picked(self._embedding, step.tokens, self.activations)  # [T, width]
        for index, layer in enumerate(self._layers):
            x += self._attend(rms_norm(x, layer.attention_norm, self.shape.norm_eps), layer, index, turn, mask, cache)
            gate, up = self._product(rms_norm(x, layer.mlp_norm, self.shape.norm_eps), layer.gate_up).chunk(2, dim=-1)
            x += self._product(F.silu(gate).mul_(up), layer.down)
            self._behind(index, x, taps)
        return x

    def forward_all(self, steps: Sequence[Pass], caches: Sequence[KVCache]) -> list[Tensor]:
        """A pass behind each of several sequences, at once where that can be done: hidden states [T, width] of each."""
        return [self.forward(step, cache) for step, cache in zip(steps, caches, strict=True)]

    def _product(self, x: Tensor, matrix: Matrix, bias: Tensor | None = None) -> Tensor:
        """X [T, in] times a matrix [out, in]: [T, out]."""
        return product(x, matrix, bias)

    def _behind(self, layer: int, x: Tensor, taps: Taps | None) -> None:
        """What is added to the states [T, width] behind a layer, and kept of them; they change further on."""
        if layer in self.steering:
            x += self.steering[layer]
        if taps is not None and layer in taps.layers:
            taps.states.append(x.clone())

    def normed(self, hidden: Tensor) -> Tensor:
        """The states that scores are products with: [R, width] -> [R, width] float32."""
        return rms_norm(hidden.float(), self._final_norm.float(), self.shape.norm_eps)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary for some rows: [R, width] -> [R, vocab] float32."""
        normed = rms_norm(hidden, self._final_norm, self.shape.norm_eps)
        scores = self._product(normed, self._head).float()
        if self.activations == torch.float32:
            return scores
        # 16 bits cannot tell the best tokens apart (steps of 1/16 at 16): compute those few again in float32.
        best = scores.topk(min(REFINED, scores.shape[-1]), dim=-1).indices  # [R, REFINED]
        exact = torch.einsum("rkw,rw->rk", picked(self._head, best, torch.float32), normed.float())
        return scores.scatter_(-1, best, exact)

    @torch.inference_mode()
    def confidence(self, hidden: Tensor, never: Tensor) -> Confidence:
        """How sure the scores of some rows are: [R, width] -> [R] each; `never` [F] int64 are tokens out of reach."""
        return Confidence.of(self.logits(hidden).index_fill_(-1, never, -torch.inf))

    @torch.inference_mode()
    def best(self, hidden: Tensor, never: Tensor, count: int = 1) -> Best:
        """The best `count` tokens behind some rows [R, width]; `never` [F] int64 are tokens out of reach."""
        return Best.of(self.logits(hidden).index_fill_(-1, never, -torch.inf), count)

    def _turn(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine of the rotation at each position, [T, 1, 2, head_dim / 2] each (see `rotate`)."""
        angle = positions[:, None, None, None] * self._frequency  # [T, 1, 1, head_dim / 2] float32
        sin = angle.sin()
        return angle.cos().to(self.activations), torch.cat([-sin, sin], dim=2).to(self.activations)

    def _attend(
        self,
        x: Tensor,
        layer: Layer,
        index: int,
        turn: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: KVCache,
    ) -> Tensor:
        s, count = self.shape, x.shape[0]
        parts = self._product(x, layer.qkv, layer.qkv_bias).view(count, -1, s.head_dim)  # [T, all heads, head_dim]
        turned, v = parts[:, : -s.kv_heads], parts[:, -s.kv_heads :]
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = turned.split([s.heads, s.kv_heads], dim=1)
            turned = torch.cat([rms_norm(q, layer.q_norm, s.norm_eps), rms_norm(k, layer.k_norm, s.norm_eps)], dim=1)
        q, k = rotate(turned, *turn).split([s.heads, s.kv_heads], dim=1)
        keys, values = cache.write(index, k.transpose(0, 1), v.transpose(0, 1))  # [kv_heads, length + T, head_dim]
        # Query heads that share a KV head become rows of one product: no repeated keys.
        q = q.view(count, s.kv_heads, -1, s.head_dim).permute(1, 2, 0, 3).reshape(1, s.kv_heads, -1, s.head_dim)
        mixed = F.scaled_dot_product_attention(q, keys[None], values[None], attn_mask=mask)[0]
        mixed = mixed.view(s.kv_heads, -1, count, s.head_dim).permute(2, 0, 1, 3)  # [T, kv_heads, group, head_dim]
        return self._product(mixed.reshape(count, -1), layer.o, layer.o_bias)

    def _attention_mask(self, step: Pass, cache: KVCache) -> Tensor | None:
        """[group * T, context + T]: 0 where visible, minus infinity elsewhere; or None where everything is visible.

        Additive and made once: a bool mask is turned into this one in every layer.
        """
        if step.mask is None:
            return None
        count, group = len(step.tokens), self.shape.heads // self.shape.kv_heads
        mask = torch.zeros(group, count, cache.length + count, dtype=cache.dtype, device=self.device)
        mask[:, :, -step.mask.shape[1] :].masked_fill_(~step.mask, -torch.inf)
        return mask.flatten(0, 1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [T, heads, head_dim], the two halves of a head as pairs.

    (a, b) -> (a cos - b sin, b cos + a sin): the head as two rows, times cos, plus the rows swapped times (-sin, sin).
    """
    halves = x.unflatten(-1, (2, -1))  # [T, heads, 2, head_dim / 2]
    return torch.addcmul(halves * cos, halves.flip(2), sin).flatten(2)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """X / sqrt(mean(x^2) + eps) * weight over the last dimension, computed in float32."""
    return F.rms_norm(x, weight.shape, weight, eps)


def _layer(weights: Mapping[str, Tensor], index: int) -> Layer:
    at = f"model.layers.{index}."
    attention, mlp = at + "self_attn.", at + "mlp."
    biases = [weights[f"{attention}{p}_proj.bias"] for p in "qkv" if f"{attention}{p}_proj.bias" in weights]
    return Layer(
        attention_norm=weights[at + "input_layernorm.weight"],
        qkv=below(*(matrix_of(weights, f"{attention}{p}_proj.weight") for p in "qkv")),
        o=matrix_of(weights, attention + "o_proj.weight"),
        mlp_norm=weights[at + "post_attention_layernorm.weight"],
        gate_up=below(*(matrix_of(weights, f"{mlp}{p}_proj.weight") for p in ("gate", "up"))),
        down=matrix_of(weights, mlp + "down_proj.weight"),
        qkv_bias=fused(*biases) if biases else None,
        o_bias=weights.get(attention + "o_proj.bias"),
        q_norm=weights.get(attention + "q_norm.weight"),
        k_norm=weights.get(attention + "k_norm.weight"),
    )
