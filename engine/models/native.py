"""The CPU pass in C behind the transformer's interface: int8 matrices, float32 activations, bfloat16 keys and values.

The matrices are the checkpoint's own int8 rows, multiplied exactly; an activation is two int8 parts (15 bits), finer
than bfloat16. Knows how `kernels.native` wants its memory; where that is not available there is `transformer`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from ctypes import c_float, c_int32, c_int64, c_void_p
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from remask.contract.errors import StorageError
from remask.contract.places import cache_dir, named_dir
from remask.engine.models.kv import KVCache, rounded
from remask.engine.models.matrix import fused
from remask.engine.models.native_kv import NativeCache
from remask.engine.models.passes import Best, Pass, Taps
from remask.engine.models.spec import Shape
from remask.engine.models.transformer import Transformer
from remask.kernels.native import build

SWITCH = "REMASK_NATIVE"  # 0 turns the C pass off
FOLDER = "REMASK_NATIVE_DIR"  # where the compiled pass is kept; the cache folder where it is not set
OUTPUTS, INPUTS = 32, 64  # what the sizes of a matrix are padded to
MOST_DIM = 512  # values of a head
MOST_BEST = 4  # tokens that C names for a row of scores


class _Matrix(ctypes.Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("tiles", "scale", "sums", "bias", "norm")),
        *((name, c_int32) for name in ("outputs", "inputs")),
    )


class _Layer(ctypes.Structure):
    _fields_ = (
        *((name, _Matrix) for name in ("qkv", "o", "gate_up", "down")),
        *((name, c_void_p) for name in ("q_norm", "k_norm")),
    )


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, c_int32) for name in ("layers", "width", "heads", "kv_heads", "head_dim", "mlp_width")),
        ("eps", c_float),
        ("layer", ctypes.POINTER(_Layer)),
        *((name, c_void_p) for name in ("embedding", "embedding_scale")),
    )


class _Step(ctypes.Structure):
    _fields_ = (
        *((name, c_int32) for name in ("tokens", "context", "capacity", "threads", "masked")),
        *((name, c_void_p) for name in ("ids", "positions", "mask", "cosine", "sine", "cache")),
        *((name, c_void_p) for name in ("tap", "push", "tapped", "pushes", "x", "scratch")),
    )


@cache
def native_library() -> ctypes.CDLL | None:
    """The C pass, compiled at the first use on a machine; None where it is off, cannot be built or is not exact."""
    if os.environ.get(SWITCH, "").strip() == "0":
        return None
    try:
        library = build.load(named_dir(FOLDER) or cache_dir())
    except StorageError:
        return None
    if library is None or library.remask_kind() == b"plain" or not _multiplies_exactly(library):
        return None
    return library


class NativeTransformer(Transformer):
    """A transformer of int8 rows. One pass at a time: its work space is shared.

    `weights` as `read_weights` gives them with the dtype int8.
    """

    def __init__(self, shape: Shape, weights: Mapping[str, Tensor]) -> None:
        library = native_library()
        assert library is not None, "ask native_library first"
        assert shape.head_dim <= MOST_DIM
        self.shape = shape
        self.steering = {}
        self._push: tuple[Tensor, Tensor] | None = None
        self._library = library
        self._kept: list[Tensor] = []  # what C points into
        self._mlp_width = -(-shape.mlp_width // OUTPUTS) * OUTPUTS  # C takes gate and up by 32 columns each
        self._lock = Lock()
        self._final_norm = weights["model.norm.weight"]
        self._embedding = weights["model.embed_tokens.weight"]  # [vocab, width] int8
        self._embedding_scale = weights["model.embed_tokens.weight_scale"]  # [vocab] float32
        head = "lm_head" if "lm_head.weight" in weights else "model.embed_tokens"
        self._scores = self._matrix(weights, [head], "model.norm.weight")
        self._records = (_Layer * shape.layers)(*(self._layer(weights, i) for i in range(shape.layers)))
        sizes = (shape.layers, shape.width, shape.heads, shape.kv_heads, shape.head_dim, self._mlp_width)
        embedded = self._embedding.data_ptr(), self._embedding_scale.data_ptr()
        self._model = _Model(*sizes, shape.norm_eps, self._records, *embedded)
        self._frequency = shape.rope_theta ** -(torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
        self._turns = torch.empty(2, 0, shape.head_dim // 2)  # cosine and sine of every position that was met
        self._scratch = torch.empty(0, dtype=torch.uint8)

    def new_cache(self) -> NativeCache:
        """An empty KV cache, laid out as the C pass reads it."""
        return NativeCache(self.shape)

    @torch.inference_mode()
    def forward(self, step: Pass, cache: KVCache, taps: Taps | None = None) -> Tensor:
        """Run one pass behind the cache's valid entries; returns hidden states [T, width] float32, and fills `taps`."""
        assert isinstance(cache, NativeCache)
        count, threads = len(step.tokens), torch.get_num_threads()
        cache.reserve(count)
        tokens, positions = step.tokens.contiguous(), step.positions.contiguous()
        mask = None if step.mask is None else step.mask.contiguous()
        x = torch.empty(count, self.shape.width)
        push, pushes = self._push or (None, None)
        tap = tapped = None
        if taps is not None:
            tap = _rows(self.shape.layers, taps.layers)
            tapped = torch.empty(len(taps.layers), *x.shape)
            taps.states = list(tapped)
        with self._lock:
            model = ctypes.byref(self._model)
            self._reserve(self._library.remask_scratch(model, count, threads))
            sizes = (count, cache.length, cache.capacity, threads, 0 if mask is None else mask.shape[1])
            turns = self._turned(int(positions.max()))
            places = tokens, positions, mask, *turns, cache.entries, tap, push, tapped, pushes, x, self._scratch
            values = _Step(*sizes, *(None if place is None else place.data_ptr() for place in places))
            self._library.remask_pass(model, ctypes.byref(values))
        return x

    def steer(self, vectors: Mapping[int, Tensor]) -> None:
        """As `Transformer.steer`; the vectors are float32, as the activations."""
        self.steering = {layer: vector.float() for layer, vector in vectors.items()}
        rows = _rows(self.shape.layers, tuple(vectors))
        self._push = (rows, torch.stack(list(self.steering.values())).contiguous()) if vectors else None

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary for some rows: [R, width] -> [R, vocab] float32, exact to the last bits."""
        hidden = hidden.float().contiguous()
        out = torch.empty(len(hidden), self.shape.vocab)
        with self._lock:
            self._reserve(self._library.remask_product_scratch(len(hidden), self.shape.width))
            _product(self._library, self._scores, self.shape.norm_eps, hidden, out, self._scratch)
        return out

    @torch.inference_mode()
    def best(self, hidden: Tensor, never: Tensor, count: int = 1) -> Best:
        """As `Transformer.best`, at most MOST_BEST of them, without scores in memory."""
        assert 1 <= count <= MOST_BEST
        hidden = hidden.float().contiguous()
        rows, threads, place = len(hidden), torch.get_num_threads(), ctypes.byref(self._scores)
        tokens, likely = (c_int64 * (rows * MOST_BEST))(), (c_float * (rows * MOST_BEST))()
        with self._lock:
            self._reserve(self._library.remask_best_scratch(place, rows, threads))
            given = c_float(self.shape.norm_eps), rows, _at(hidden), _at(never), len(never)
            self._library.remask_best(place, *given, _at(self._scratch), threads, tokens, likely)
        starts = range(0, rows * MOST_BEST, MOST_BEST)
        return Best([tokens[at : at + count] for at in starts], [likely[at : at + count] for at in starts])

    def _turned(self, last: int) -> Tensor:
        """Cosine and sine of the rotation at all positions up to `last` and some more: [2, positions, head_dim / 2]."""
        if last >= self._turns.shape[1]:
            angle = torch.arange(rounded(last + 1))[:, None] * self._frequency
            self._turns = torch.stack([angle.cos(), angle.sin()])
        return self._turns

    def _reserve(self, size: int) -> None:
        if self._scratch.numel() < size:
            self._scratch = torch.empty(size, dtype=torch.uint8)

    def _layer(self, weights: Mapping[str, Tensor], index: int) -> _Layer:
        at = f"model.layers.{index}."
        attention, mlp = at + "self_attn.", at + "mlp."
        qkv = [attention + name for name in ("q_proj", "k_proj", "v_proj")]
        return _Layer(
            self._matrix(weights, qkv, at + "input_layernorm.weight"),
            self._matrix(weights, [attention + "o_proj"]),
            self._matrix(weights, [mlp + "gate_proj", mlp + "up_proj"], at + "post_attention_layernorm.weight"),
            self._matrix(weights, [mlp + "down_proj"]),
            self._pointer(weights.get(attention + "q_norm.weight")),
            self._pointer(weights.get(attention + "k_norm.weight")),
        )  # fmt: skip

    def _matrix(self, weights: Mapping[str, Tensor], names: Sequence[str], norm: str = "") -> _Matrix:
        more = self._mlp_width - self.shape.mlp_width
        below, beside = (more if f".{part}_proj" in names[0] else 0 for part in ("gate", "down"))
        rows = fused(*(_wider(weights[f"{name}.weight"], (0, beside, 0, below)) for name in names))
        scale = fused(*(_wider(weights[f"{name}.weight_scale"], (0, below)) for name in names))
        biases = [weights[f"{name}.bias"] for name in names if f"{name}.bias" in weights]
        tensors = *_packed(self._library, rows, scale), fused(*biases) if biases else None, weights.get(norm)
        return _Matrix(*(self._pointer(tensor) for tensor in tensors), *rows.shape)

    def _pointer(self, tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        self._kept.append(tensor)
        return tensor.data_ptr()


def _rows(layers: int, chosen: Sequence[int]) -> Tensor:
    """[layers] int32: the place of each layer among the chosen ones, -1 for others."""
    rows = torch.full((layers,), -1, dtype=torch.int32)
    rows[list(chosen)] = torch.arange(len(chosen), dtype=torch.int32)
    return rows


def _wider(tensor: Tensor, zeros: tuple[int, ...]) -> Tensor:
    return torch.nn.functional.pad(tensor, zeros) if any(zeros) else tensor


def _packed(library: ctypes.CDLL, rows: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix [out, in] int8 as C reads it: tiles, scales [padded out], and the sums that unsigned products need."""
    outputs, inputs = (-(-size // unit) * unit for size, unit in zip(rows.shape, (OUTPUTS, INPUTS), strict=True))
    tiles = torch.empty(outputs * inputs, dtype=torch.int8)
    sums = torch.empty(outputs, dtype=torch.int32)
    rows = rows.contiguous()
    library.remask_pack(_at(rows), *rows.shape, _at(tiles), _at(sums))
    return tiles, _wider(scale.float().contiguous(), (0, outputs - len(scale))), sums


def _product(library: ctypes.CDLL, matrix: _Matrix, eps: float, x: Tensor, out: Tensor, scratch: Tensor) -> None:
    threads = torch.get_num_threads()
    library.remask_product(ctypes.byref(matrix), c_float(eps), len(x), _at(x), _at(out), _at(scratch), threads)


def _multiplies_exactly(library: ctypes.CDLL) -> bool:
    """Whether products of large integers come out to the last bit: a fault of compiler or processor shows here."""
    x = (torch.arange(3 * 200).view(3, 200) % 255 - 127).float()
    rows = (torch.arange(40 * 200).view(40, 200) * 7 % 255 - 127).to(torch.int8)
    rows[0], x[0] = 127, 127.0  # the largest sum
    x[:, 0] = 127.0  # every row's step is 1
    tiles, scale, sums = _packed(library, rows, torch.ones(40))
    matrix = _Matrix(*(t.data_ptr() for t in (tiles, scale, sums)), None, None, *rows.shape)
    out = torch.empty(3, 40)
    _product(library, matrix, 0.0, x, out, torch.empty(library.remask_product_scratch(3, 200), dtype=torch.uint8))
    return torch.equal(out, x @ rows.float().T)


def _at(tensor: Tensor) -> Any:
    return c_void_p(tensor.data_ptr())
