"""The forward pass on a card with Remask's own kernels: the transformer's formulas, fewer readings of memory.

All sequences of a model lie in one pool of pages. Where Triton or the card cannot run the kernels the transformer
itself is the reference that is used, and that is said once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import RemaskError
from remask.engine.models.inputs import Inputs
from remask.engine.models.kv import KVCache
from remask.engine.models.matrix import Matrix, Rows, picked, product
from remask.engine.models.paged import PagedCache, PagePool
from remask.engine.models.passes import Confidence, Pass, Taps
from remask.engine.models.spec import Shape
from remask.engine.models.static_pass import StaticPasses
from remask.engine.models.transformer import Layer, Transformer

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


class AcceleratedTransformer(Transformer):
    """`Transformer` with kernels for norms, rotary positions, attention and confidence, and short passes captured.

    Where a kernel fails at work, its formulas in torch take over for good, and that is said once.
    """

    def __init__(self, shape: Shape, weights: Mapping[str, Tensor]) -> None:
        from remask.kernels import attention, confidence_head, rms_norm, rotary, scaled_product

        super().__init__(shape, weights)
        self._scaled_product, self._few = scaled_product.scaled_product, scaled_product.MOST_ROWS
        self._attention, self._rms_norm, self._rotary = attention, rms_norm.rms_norm, rotary.rotary
        self._confidence = confidence_head.confidence_head
        self._pool = PagePool(shape, dtype=self.activations, device=self.device)
        self._static = StaticPasses(self._pool, self._run, shape.max_positions)
        self._works = True

    @property
    def joins(self) -> bool:
        """As `Transformer.joins`: while the kernels work."""
        return self._works

    def new_cache(self) -> PagedCache:
        """An empty sequence in the pool that all of this model's sequences share."""
        return PagedCache(self._pool)

    @torch.inference_mode()
    def forward(self, step: Pass, cache: KVCache, taps: Taps | None = None) -> Tensor:
        """As `Transformer.forward`."""
        if self._works:
            try:
                return self._forward([step], [cache], taps)
            except (RemaskError, torch.OutOfMemoryError):
                raise
            except Exception as error:  # a compiler, a card with too little of something: the reference runs
                self._give_up(error)
                if taps is not None:
                    taps.states.clear()  # those of the layers before the failure
        return super().forward(step, cache, taps)

    @torch.inference_mode()
    def forward_all(self, steps: Sequence[Pass], caches: Sequence[KVCache]) -> list[Tensor]:
        """As `Transformer.forward_all`: the weights are read once for all sequences."""
        if self._works:
            try:
                return list(self._forward(steps, caches).split([len(step.tokens) for step in steps]))
            except (RemaskError, torch.OutOfMemoryError):
                raise
            except Exception as error:
                self._give_up(error)
        return super().forward_all(steps, caches)

    def _forward(self, steps: Sequence[Pass], caches: Sequence[KVCache], taps: Taps | None = None) -> Tensor:
        """Hidden states [R, width] of all passes, one after the other."""
        paged = [cache for cache in caches if isinstance(cache, PagedCache)]
        assert len(paged) == len(steps)
        if taps is None and not self.steering and self._static.takes(steps, paged):
            return self._static.forward(steps, paged)
        for step, sequence in zip(steps, paged, strict=True):
            sequence.reserve(len(step.tokens))
        return self._run(Inputs.of(steps, paged), taps)

    @torch.inference_mode()
    def confidence(self, hidden: Tensor, never: Tensor) -> Confidence:
        """As `Transformer.confidence`, without logits in memory."""
        if self._works:
            try:
                normed = self._rms_norm(hidden.contiguous(), self._final_norm, self.shape.norm_eps)
                head, scale = self._head if isinstance(self._head, Rows) else (self._head, None)
                return Confidence(*self._confidence(normed, head, never, scale)[:3])
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                self._give_up(error)
        return super().confidence(hidden, never)

    def state(self) -> dict[str, Any]:
        """Whether the kernels work, and which sizes of passes are captured (see `Size`), as plain JSON values."""
        return {"works": self._works, "captures": self._static.usable, "captured": self._static.captured()}

    def _product(self, x: Tensor, matrix: Matrix, bias: Tensor | None = None) -> Tensor:
        """As `Transformer._product`; 8-bit rows are widened in the tile where few tokens are multiplied with them."""
        if isinstance(matrix, Rows) and self._works and len(x) <= self._few:
            return self._scaled_product(x, *matrix, bias)
        return product(x, matrix, bias)

    def _give_up(self, error: Exception) -> None:
        logger.warning("Remask's own kernels fail on %s (%s); torch's are used from now on.", self.device, error)
        self._works = False

    def _run(self, inputs: Inputs, taps: Taps | None = None) -> Tensor:
        """All layers over inputs on the device; hidden states [T, width]. Waits for nothing: it may be captured."""
        eps = self.shape.norm_eps
        x = picked(self._embedding, inputs.tokens, self.activations)  # [T, width]
        room = x.new_zeros(len(x), self.shape.heads, self.shape.head_dim)  # the padding's rows stay zero
        for index, layer in enumerate(self._layers):
            x += self._mixed(self._rms_norm(x, layer.attention_norm, eps), layer, index, inputs, room)
            gate, up = self._product(self._rms_norm(x, layer.mlp_norm, eps), layer.gate_up).chunk(2, dim=-1)
            x += self._product(F.silu(gate).mul_(up), layer.down)
            self._behind(index, x, taps)
        return x

    def _mixed(self, x: Tensor, layer: Layer, index: int, inputs: Inputs, room: Tensor) -> Tensor:
        s, count = self.shape, len(x)
        qkv = self._product(x, layer.qkv, layer.qkv_bias).view(count, -1, s.head_dim)
        norms = None if layer.q_norm is None or layer.k_norm is None else (layer.q_norm, layer.k_norm)
        key_pages, value_pages = self._pool.buffer[:, index]  # [pages, PAGE, kv_heads, head_dim] each
        keys, values = key_pages.flatten(0, 1), value_pages.flatten(0, 1)
        q = self._rotary(qkv, inputs.positions, self._frequency, norms, s.norm_eps, keys, values, inputs.slots, s.heads)
        mode = self._attention.Mode.BIDIRECTIONAL if inputs.mask is None else self._attention.Mode.MASKED
        mixed = self._attention.canvas_attention(
            q,
            keys[inputs.slots],
            values[inputs.slots],
            key_pages,
            value_pages,
            inputs.table,
            inputs.contexts,
            inputs.starts,
            mode,
            mask=inputs.mask,
            longest=inputs.longest,
            out=room,
        )
        return self._product(mixed.view(count, -1), layer.o, layer.o_bias)
