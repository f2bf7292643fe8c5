"""The forward pass on a card with Remask's own kernels: the transformer's formulas, fewer readings of memory.

The KV cache stays one buffer a sequence; its pages are views of it. Where Triton or the card cannot run the kernels the
transformer itself is the reference that is used, and that is said once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.engine.models.kv import GROWTH, KVCache
from remask.engine.models.spec import Shape
from remask.engine.models.transformer import Layer, Pass, Taps, Transformer

PAGE = 64  # tokens; a tile of keys
OLDEST = (8, 0)  # compute capability: bfloat16 products in hardware
logger = logging.getLogger(__name__)


@cache
def kernels_run(device: torch.device) -> bool:
    """Whether the kernels run on this device; said once in the log where they do not."""
    if device.type != "cuda":
        return False
    try:
        from remask.kernels.rms_norm import rms_norm as trial

        if torch.cuda.get_device_capability(device) < OLDEST:
            raise RuntimeError("the card is too old")
        trial(torch.ones(1, 16, device=device), torch.ones(16, device=device), 1e-5)
    except Exception as error:  # an import, a compiler, a driver: whatever it is, the reference runs
        logger.warning("Remask's own kernels do not run on %s (%s); torch's are used.", device, error)
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Around:
    """What is the same for all layers of a pass: see `kernels.rotary` and `kernels.attention`."""

    positions: Tensor
    slots: Tensor
    mask: Tensor | None
    table: Tensor
    contexts: Tensor
    starts: Tensor


class AcceleratedTransformer(Transformer):
    """`Transformer` with kernels for norms, rotary positions and attention."""

    def __init__(self, shape: Shape, weights: Mapping[str, Tensor]) -> None:
        from remask.kernels import attention, rms_norm, rotary

        assert GROWTH % PAGE == 0
        super().__init__(shape, weights)
        self._attention, self._rms_norm, self._rotary = attention, rms_norm.rms_norm, rotary.rotary

    @torch.inference_mode()
    def forward(self, step: Pass, cache: KVCache, taps: Taps | None = None) -> Tensor:
        """As `Transformer.forward`."""
        if step.mask is not None and step.mask.shape[1] > len(step.tokens):
            return super().forward(step, cache, taps)  # the kernel's masks are of the pass's own tokens
        eps = self.shape.norm_eps
        cache.reserve(len(step.tokens))
        around = self._around(step, cache)
        x = self._embedding[step.tokens]  # [T, width]
        for index, layer in enumerate(self._layers):
            normed = self._rms_norm(x, layer.attention_norm, eps)
            x += self._mixed(normed, layer, index, cache, around)
            gate, up = F.linear(self._rms_norm(x, layer.mlp_norm, eps), layer.gate_up).chunk(2, dim=-1)
            x += F.linear(F.silu(gate).mul_(up), layer.down)
            self._behind(index, x, taps)
        return x

    def _around(self, step: Pass, cache: KVCache) -> _Around:
        """One sequence whose pages lie in order, and its mask."""
        sizes = torch.tensor([cache.length, 0, len(step.tokens)], dtype=torch.int32).to(self.device)
        table = torch.arange(cache.capacity // PAGE, dtype=torch.int32, device=self.device)[None]
        return _Around(step.positions, cache.length + torch.arange(len(step.tokens), device=self.device), step.mask,
                       table, sizes[:1], sizes[1:])  # fmt: skip

    def _mixed(self, x: Tensor, layer: Layer, index: int, cache: KVCache, around: _Around) -> Tensor:
        s, count = self.shape, len(x)
        qkv = F.linear(x, layer.qkv, layer.qkv_bias).view(count, -1, s.head_dim)
        norms = None if layer.q_norm is None or layer.k_norm is None else (layer.q_norm, layer.k_norm)
        keys, values = (half.transpose(0, 1) for half in cache.layer(index))  # [capacity, kv_heads, head_dim]
        q = self._rotary(qkv, around.positions, self._frequency, norms, s.norm_eps, keys, values, around.slots, s.heads)
        mode = self._attention.Mode.BIDIRECTIONAL if around.mask is None else self._attention.Mode.MASKED
        mixed = self._attention.canvas_attention(
            q,
            keys[around.slots],
            values[around.slots],
            keys.unflatten(0, (-1, PAGE)),
            values.unflatten(0, (-1, PAGE)),
            around.table,
            around.contexts,
            around.starts,
            mode,
            mask=around.mask,
            longest=count,
        )
        return F.linear(mixed.view(count, -1), layer.o, layer.o_bias)
