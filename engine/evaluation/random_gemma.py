"""DiffusionGemma's network of any size with random weights, as transformers builds it: for timing only.

The text part; the part that sees pictures is as small as it can be. Knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from torch import nn

from remask.contract.errors import InputError, ModelError
from remask.engine.models.gemma import GemmaCache, GemmaTransformer
from remask.engine.models.matrix import EIGHT_BITS
from remask.engine.models.spec import Shape

CHUNK = 512  # tokens of a context that are read at a time
PUBLISHED = {  # what a Shape does not say, as in the checkpoint's config.json
    "global_head_dim": 512,
    "num_global_key_value_heads": 2,
    "sliding_window": 1024,
    "max_position_embeddings": 262144,
}
SMALL: dict[str, Any] = {
    "global_head_dim": 8,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "full_attention"],
}
PICTURES = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
}


def random_gemma(name: str, shape: Shape, dtype: torch.dtype, device: torch.device) -> GemmaTransformer:
    """The network with random weights. Raises InputError or ModelError, before anything is taken of the memory."""
    if dtype in EIGHT_BITS:
        raise InputError(f"The shape {name} does not run in 8 bits.", advice="Use bfloat16.")
    needed, free = shape.parameters * dtype.itemsize, _free(device)
    if needed > free:
        raise ModelError(
            f"The shape {name} needs {needed / 1e9:.1f} GB, and {device} has {free / 1e9:.1f} GB free.",
            advice="Use a card with more memory.",
        )
    network = _network(shape)
    made: dict[int, nn.Parameter] = {}  # encoder and decoder share most of theirs
    for module in network.modules():
        for key, parameter in module._parameters.items():
            if parameter is not None:
                if id(parameter) not in made:
                    made[id(parameter)] = _random(parameter, dtype, device)
                module._parameters[key] = made[id(parameter)]
    return GemmaTransformer(network.to(device).eval(), shape)


def read_context(transformer: GemmaTransformer, tokens: int) -> GemmaCache:
    """A cache with so many tokens in it; one at least, as the network wants."""
    cache, tokens = transformer.new_cache(), max(1, tokens)
    with torch.inference_mode():
        while cache.length < tokens:
            count = min(CHUNK, tokens - cache.length)
            transformer.encode([(7 * i + 11) % min(1000, transformer.shape.vocab) for i in range(count)], cache)
            cache.advance(count)
    return cache


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def _random(parameter: nn.Parameter, dtype: torch.dtype, device: torch.device) -> nn.Parameter:
    made = torch.empty(parameter.shape, dtype=dtype, device=device)
    return nn.Parameter(made.normal_(0, 0.02) if made.ndim > 1 else made.fill_(1), requires_grad=False)


def _network(shape: Shape) -> Any:
    """The network, its parameters without memory."""
    try:
        import transformers
    except ImportError:
        raise ModelError("DiffusionGemma needs the package transformers.", advice="Install remask[gemma].") from None
    text = transformers.DiffusionGemmaTextConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.width,
        intermediate_size=shape.mlp_width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        num_experts=shape.experts,
        top_k_experts=shape.experts_each,
        moe_intermediate_size=shape.expert_width,
        **(PUBLISHED if shape.layers > len(SMALL["layer_types"]) else SMALL),
    )
    vision = transformers.Gemma4VisionConfig(**PICTURES)
    config = transformers.DiffusionGemmaConfig(text_config=text, vision_config=vision)
    with _without_memory():
        return transformers.DiffusionGemmaForBlockDiffusion(config)


@contextmanager
def _without_memory() -> Iterator[None]:
    """Parameters of modules that are made here have shapes only; buffers are computed as always."""
    plain = nn.Module.register_parameter

    def register(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and parameter.device.type != "meta":  # else it is another module's, shared
            parameter = nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=False)
        plain(module, name, parameter)

    nn.Module.register_parameter = register  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = plain  # type: ignore[method-assign]
