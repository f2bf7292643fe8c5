"""Small random checkpoints in the published format of each family: config, tokenizer, safetensors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from remask.engine.models.checkpoint import expected_tensors
from remask.engine.models.config import dense_shape
from remask.engine.models.families import FAMILIES

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>", "<|MASK|>", "|<MASK>|", "<|fim_prefix|>")
SPECIAL += ("<|fim_suffix|>", "<|fim_middle|>", "<|prefix|>", "<|suffix|>", "<|expand|>", "<|delete|>")
VOCAB = 320

BASE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCAB,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}

OWN = {
    "mask_token": "<|mask|>",
    "end_tokens": ["<|endoftext|>"],
    "prefix_token": "<|prefix|>",
    "suffix_token": "<|suffix|>",
}

PUBLISHED = {
    "remask": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "remask": OWN},
    "fast-dllm-v2": {
        "architectures": ["Fast_dLLM_QwenForCausalLM"],
        "model_type": "Fast_dLLM_Qwen",
        "bd_size": 32,
        "auto_map": {"AutoModelForCausalLM": "modeling.Fast_dLLM_QwenForCausalLM"},
    },
    "sdar": {
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "block_size": 4,
        "auto_map": {"AutoModelForCausalLM": "modeling_sdar.SDARForCausalLM"},
    },
    "wedlm": {"architectures": ["WeDLMForCausalLM"], "model_type": "wedlm"},
    "dream": {"architectures": ["DreamModel"], "model_type": "Dream", "auto_map": {"AutoModel": "x.DreamModel"}},
    "dreamon": {"architectures": ["DreamModel"], "model_type": "Dream"},
    "open-dcoder": {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "mask_token_id": 259,
    },
    "tiny-a2d": {"architectures": ["A2DQwen2LMHeadModel"], "model_type": "a2d-qwen2", "block_size": 8},
    "tiny-a2d-mdlm": {"architectures": ["A2DQwen3LMHeadModel"], "model_type": "a2d-qwen3", "_name_or_path": "x-mdlm"},
}


def byte_tokenizer() -> Tokenizer:
    """One token a byte, special tokens behind them, as a real tokenizers.Tokenizer."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in SPECIAL])
    return tokenizer


def token(name: str) -> int:
    return 256 + SPECIAL.index(name)


def write_checkpoint(folder: Path, family: str, *, seed: int = 0, shards: int = 1, **changes) -> Path:
    """A random checkpoint of a family; its folder. `changes` override config values."""
    folder.mkdir(parents=True, exist_ok=True)
    config = BASE | PUBLISHED[family] | changes
    (folder / "config.json").write_text(json.dumps(config))
    if family == "dreamon":
        ids = {"expand_token_id": token("<|expand|>"), "delete_token_id": token("<|delete|>")}
        (folder / "generation_config.json").write_text(json.dumps(ids))
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    weights = random_tensors(config, seed)
    names = sorted(weights)
    placed = {}
    for number in range(shards):
        file = "model.safetensors" if shards == 1 else f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = {n: weights[n] for n in names[number::shards]}
        save_file(part, folder / file)
        placed |= dict.fromkeys(part, file)
    if shards > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    return folder


def random_tensors(config: dict, seed: int = 0) -> dict[str, torch.Tensor]:
    known = FAMILIES[config["architectures"][0]]
    shape = dense_shape(config, qkv_bias=known.qkv_bias, qk_norm=known.qk_norm)
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, size in expected_tensors(replace(shape, tied_embeddings=config["tie_word_embeddings"])).items():
        noise = torch.randn(size, generator=generator)
        if "norm" in name:
            tensors[name] = 1 + 0.1 * noise
        else:
            tensors[name] = noise * (1.0 if "embed" in name or "lm_head" in name else 1 / size[-1] ** 0.5)
    return tensors
