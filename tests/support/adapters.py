"""Small random LoRA adapters in PEFT's files, and what they add, computed plainly."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

RANK = 3
BASE = {
    "peft_type": "LORA",
    "r": RANK,
    "lora_alpha": 6,
    "target_modules": ["q_proj", "down_proj"],
    "bias": "none",
    "use_dora": False,
    "use_rslora": False,
    "fan_in_fan_out": False,
    "modules_to_save": None,
    "rank_pattern": {},
    "alpha_pattern": {},
    "init_lora_weights": True,
    "base_model_name_or_path": "org/base",
}
MATRICES = {  # of the checkpoints in `checkpoints`
    "model.layers.0.self_attn.q_proj": (32, 32),
    "model.layers.1.self_attn.q_proj": (32, 32),
    "model.layers.1.mlp.down_proj": (32, 48),
}


def random_pairs(seed: int = 0, rank: int = RANK) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Matrix -> (a [rank, in], b [out, rank]), large enough to change what a tiny model writes."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (torch.randn(rank, width, generator=generator), torch.randn(out, rank, generator=generator))
        for name, (out, width) in MATRICES.items()
    }


def write_adapter(folder: Path, pairs=None, *, lead: str = "base_model.model.", **changes) -> Path:
    """A float32 adapter; its folder. `changes` override the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, (a, b) in (pairs or random_pairs()).items():
        tensors |= {f"{lead}{name}.lora_A.weight": a, f"{lead}{name}.lora_B.weight": b}
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(BASE | changes))
    return folder
