"""A small random DiffusionGemma checkpoint in the published format."""

from __future__ import annotations

from pathlib import Path

import torch
from checkpoints import VOCAB, byte_tokenizer

from remask.engine.evaluation.random_gemma import PICTURES

CANVAS, WINDOW = 8, 16
COLD = {"t_min": 0.0, "t_max": 1e-6, "max_denoising_steps": 6}  # temperature 0, as near as it is allowed


def small_gemma():
    """transformers' own network with random weights."""
    import transformers

    text = transformers.DiffusionGemmaTextConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        global_head_dim=8,
        num_experts=4,
        top_k_experts=2,
        moe_intermediate_size=16,
        sliding_window=WINDOW,
        max_position_embeddings=4096,
        layer_types=["sliding_attention", "full_attention"],
        eos_token_id=1,
    )
    vision = transformers.Gemma4VisionConfig(**PICTURES)
    config = transformers.DiffusionGemmaConfig(text_config=text, vision_config=vision, canvas_length=CANVAS)
    torch.manual_seed(0)
    return transformers.DiffusionGemmaForBlockDiffusion(config).eval()


def write_gemma(folder: Path, network=None) -> Path:
    """Save it as it would be published; returns the folder."""
    network = network or small_gemma()
    network.generation_config.update(**COLD, eos_token_id=[300])
    network.save_pretrained(folder)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder
