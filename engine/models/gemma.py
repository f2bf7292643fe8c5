"""DiffusionGemma through transformers' own classes: a causal encoder with a KV cache, and a canvas decoder.

Looks like the native transformer to sessions; how a canvas is denoised is `decode.regimes.uniform`'s.
transformers is imported only here, and only when such a checkpoint is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import Tensor

from remask.contract.errors import ModelError
from remask.engine.models.config import positive, read_json
from remask.engine.models.kv import KVCache
from remask.engine.models.passes import Pass, Taps
from remask.engine.models.spec import Layout, ModelSpec, Regime, Shape, UniformNoise
from remask.engine.models.transformer import Transformer


class GemmaCache(KVCache):
    """transformers' cache of one session. Sliding-window layers forget, so only short ones can be cut back."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._window = int(getattr(config, "sliding_window", 0) or 0)
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        from transformers import DynamicCache

        self.entries = DynamicCache(config=self._config)
        self.length = 0

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values held."""
        held = (t for layer in self.entries.layers for t in (layer.keys, layer.values) if t is not None)
        return sum(t.numel() * t.element_size() for t in held)

    def advance(self, tokens: int) -> None:
        """Declare what the encoder has just read valid."""
        self.length += tokens

    def truncate(self, length: int) -> int:
        """Forget everything from `length` on, or all of it where a window has moved on; returns what is left."""
        if length == self.length:
            return length
        if length == 0 or self.length >= self._window > 0:
            self.clear()
            return 0
        self.entries.crop(length - self.length)  # negative: how many to remove
        self.length = length
        return length

    def snapshot(self, start: int = 0) -> Tensor:
        """Not kept on disk: an empty tensor."""
        return torch.empty(2, 0, 0, 0, 0)

    def restore(self, entries: Tensor, start: int = 0) -> None:
        """Nothing is ever kept on disk; raises ValueError."""
        raise ValueError("no entries")


class GemmaTransformer(Transformer):
    """The checkpoint's two halves, read by `encode` and `denoise` instead of `forward`. One sequence at a time."""

    def __init__(self, network: Any, shape: Shape) -> None:
        self.network = network
        self.shape = shape

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        device: torch.device = self.network.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights are held in."""
        dtype: torch.dtype = self.network.dtype
        return dtype

    def new_cache(self) -> GemmaCache:
        """An empty cache for the encoder."""
        return GemmaCache(self.network.config.get_text_config(decoder=True))

    def encode(self, tokens: list[int], cache: GemmaCache) -> None:
        """Read tokens causally behind what the cache holds; they are valid after `cache.advance`."""
        start = cache.length
        ids = torch.tensor([tokens], device=self.device)
        self.network.model.encoder(
            input_ids=ids,
            attention_mask=torch.ones(1, start + len(tokens), dtype=torch.bool, device=self.device),
            cache=cache.entries,
            position_ids=torch.arange(start, start + len(tokens), dtype=torch.int32, device=self.device)[None],
        )

    def forward(self, step: Pass, cache: KVCache, taps: Taps | None = None) -> Tensor:
        """Not how this network reads; raises TypeError."""
        raise TypeError("DiffusionGemma reads by encode and denoise")

    def denoise(self, canvas: Tensor, conditioning: Tensor | None, cache: GemmaCache) -> Tensor:
        """One pass over a canvas [C] given the last pass's processed logits [1, C, vocab]; logits [1, C, vocab]."""
        start, size = cache.length, len(canvas)
        visible = torch.ones(1, start + size, dtype=torch.bool, device=self.device)
        logits: Tensor = self.network(
            decoder_input_ids=canvas[None],
            self_conditioning_logits=conditioning,
            decoder_attention_mask=visible,
            cache=cache.entries,
            decoder_position_ids=torch.arange(start, start + size, dtype=torch.int32, device=self.device)[None],
        ).logits
        return logits

    @property
    def embedding_dtype(self) -> torch.dtype:
        """What self-conditioning logits are handed on in."""
        dtype: torch.dtype = self.network.model.decoder.embed_tokens.weight.dtype
        return dtype


def load_gemma(folder: Path, *, dtype: torch.dtype, device: torch.device) -> GemmaTransformer:
    """Load the checkpoint without running any code of its own. Raises ModelError."""
    try:
        from transformers import DiffusionGemmaForBlockDiffusion
    except ImportError:
        raise ModelError(
            "DiffusionGemma needs the package transformers (5.24 or newer).", advice="Install remask[gemma]."
        ) from None
    try:
        network, report = DiffusionGemmaForBlockDiffusion.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=dtype, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, SafetensorError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelError(f"The DiffusionGemma checkpoint in {folder} cannot be loaded: {reason}") from None
    wrong = [n for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for n in report[kind]]
    if wrong:
        raise ModelError(f"The checkpoint in {folder} does not fit its config.json: {wrong[0]!r} is wrong or missing.")
    network.to(device).eval()
    return GemmaTransformer(network, _shape(read_json(folder / "config.json")))


def gemma_spec(name: str, config: dict[str, Any], end_ids: tuple[int, ...]) -> ModelSpec:
    """The spec of a DiffusionGemma checkpoint; `config` holds its generation settings, too."""
    sampler = config.get("sampler_config") or {}
    chosen = {
        "steps": config.get("max_denoising_steps"),
        "t_min": config.get("t_min"),
        "t_max": config.get("t_max"),
        "entropy_bound": sampler.get("entropy_bound"),
        "stable_steps": config.get("stability_threshold"),
        "confident_below": config.get("confidence_threshold"),
    }
    noise = UniformNoise(**{k: v for k, v in chosen.items() if v is not None})
    positive({"max_denoising_steps": noise.steps}, "max_denoising_steps")
    return ModelSpec(
        name=name,
        family="diffusion-gemma",
        shape=_shape(config),
        regime=Regime.UNIFORM,
        block_size=positive({"canvas_length": config.get("canvas_length") or 256}, "canvas_length"),
        shift=0,
        verifies=False,
        mask_id=-1,
        end_ids=end_ids,
        layout=Layout.CHAT,
        policy="entropy_bound",
        uniform=noise,
        prefix_tokens=3072,
        suffix_tokens=1024,
        context_tokens=1024,
    )


def chat_end_ids(config: dict[str, Any], tokenizer: Tokenizer) -> tuple[int, ...]:
    """Tokens that end a reply: those the checkpoint names, and the mark that closes a turn."""
    said = config.get("eos_token_id")
    ids = [said] if isinstance(said, int) else list(said or [])
    ids += [i for t in ("<end_of_turn>", "<turn|>", "<eos>") if (i := tokenizer.token_to_id(t)) is not None]
    if not ids:
        raise ModelError("The checkpoint names no token that ends a text.")
    return tuple(dict.fromkeys(int(i) for i in ids))


def _shape(config: dict[str, Any]) -> Shape:
    """As far as memory and vocabulary go; the network itself is transformers'."""
    text = config.get("text_config") or {}
    heads = int(text.get("num_attention_heads", 8))
    return Shape(
        layers=int(text.get("num_hidden_layers", 30)),
        width=int(text.get("hidden_size", 2304)),
        heads=heads,
        kv_heads=int(text.get("num_key_value_heads", heads)),
        head_dim=int(text.get("head_dim", 256)),
        mlp_width=int(text.get("intermediate_size", 9216)),
        vocab=int(text.get("vocab_size", 262_144)),
        max_positions=int(text.get("max_position_embeddings", 131_072)),
        rope_theta=10_000.0,
        norm_eps=1e-6,
        tied_embeddings=True,
        experts=int(text.get("num_experts") or 0),
        experts_each=int(text.get("top_k_experts") or 0),
        expert_width=int(text.get("moe_intermediate_size") or 0),
    )
