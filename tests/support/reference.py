"""The naive reference: LLaMA's formulas without a cache, and greedy decoding one token at a time."""

from __future__ import annotations

import torch
from torch import Tensor


def reference_logits(weights: dict[str, Tensor], shape, tokens: list[int], visible: Tensor) -> Tensor:
    """Logits [T, vocab] of a whole row; `visible` [T, T] says which column each row sees."""
    x = weights["model.embed_tokens.weight"][tokens]
    positions = torch.arange(len(tokens)).float()
    for i in range(shape.layers):
        w = {k.removeprefix(f"model.layers.{i}."): v for k, v in weights.items() if k.startswith(f"model.layers.{i}.")}
        x = x + _attention(_norm(x, w["input_layernorm.weight"], shape), w, shape, positions, visible)
        h = _norm(x, w["post_attention_layernorm.weight"], shape)
        gate, up = h @ w["mlp.gate_proj.weight"].T, h @ w["mlp.up_proj.weight"].T
        x = x + (gate * torch.sigmoid(gate) * up) @ w["mlp.down_proj.weight"].T
    return _norm(x, weights["model.norm.weight"], shape) @ weights["model.embed_tokens.weight"].T


def reference_greedy(weights, shape, prompt: list[int], count: int, end: int, never: list[int]) -> list[int]:
    """The next `count` tokens, or those up to `end`; tokens in `never` are out of reach."""
    tokens = list(prompt)
    for _ in range(count):
        causal = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
        scores = reference_logits(weights, shape, tokens, causal)[-1]
        scores[never] = -torch.inf
        token = int(scores.argmax())
        if token == end:
            break
        tokens.append(token)
    return tokens[len(prompt) :]


def _norm(x: Tensor, weight: Tensor, shape) -> Tensor:
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + shape.norm_eps) * weight


def _attention(x: Tensor, w: dict[str, Tensor], shape, positions: Tensor, visible: Tensor) -> Tensor:
    heads = []
    for head in range(shape.heads):
        shared = head // (shape.heads // shape.kv_heads)
        rows = slice(head * shape.head_dim, (head + 1) * shape.head_dim)
        kv_rows = slice(shared * shape.head_dim, (shared + 1) * shape.head_dim)
        q = _rotate(x @ w["self_attn.q_proj.weight"][rows].T, positions, shape)
        k = _rotate(x @ w["self_attn.k_proj.weight"][kv_rows].T, positions, shape)
        v = x @ w["self_attn.v_proj.weight"][kv_rows].T
        scores = (q @ k.T) / shape.head_dim**0.5
        heads.append(scores.masked_fill(~visible, -torch.inf).softmax(-1) @ v)
    return torch.cat(heads, dim=-1) @ w["self_attn.o_proj.weight"].T


def _rotate(x: Tensor, positions: Tensor, shape) -> Tensor:
    half = shape.head_dim // 2
    frequency = shape.rope_theta ** (-torch.arange(half).float() / half)
    angle = positions[:, None] * frequency
    first, second = x[:, :half], x[:, half:]
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], dim=-1)
