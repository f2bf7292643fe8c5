"""The families of open block-diffusion checkpoints: what each one does by habit, and which one a checkpoint is of.

A family is known by the architecture that `config.json` names; an `auto_map` that would run the checkpoint's own code
is never followed. Knows no files.

Sources: the published configurations and samplers of each family (see docs/models.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from remask.contract.errors import ModelError
from remask.engine.models.config import Config
from remask.engine.models.spec import Layout, Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a family's checkpoints share. `mask_tokens` and `end_tokens` are names to look for, best first."""

    name: str
    title: str
    regime: Regime
    shift: int
    block_size: int
    layout: Layout
    policy: str
    mask_tokens: tuple[str, ...] = ("<|mask|>",)
    end_tokens: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")
    block_names: tuple[str, ...] = ("block_size", "block_length")
    sub_block: int = 0
    verifies: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    prefix_tokens: int = 3072
    suffix_tokens: int = 1024
    context_tokens: int = 1024


FAST_DLLM = Family(
    name="fast-dllm-v2",
    title="Fast-dLLM v2",
    regime=Regime.BLOCK_CAUSAL,
    shift=1,
    block_size=32,
    sub_block=8,
    block_names=("bd_size", "block_size"),
    layout=Layout.CHAT,
    policy="confident",
    mask_tokens=("|<MASK>|", "<|mask|>"),
    qkv_bias=True,
)
SDAR = Family(
    name="sdar",
    title="SDAR",
    regime=Regime.BLOCK_CAUSAL,
    shift=0,
    block_size=4,
    layout=Layout.CHAT,
    policy="confident",
    mask_tokens=("<|MASK|>", "<|mask|>"),
    qk_norm=True,
)
WEDLM = Family(
    name="wedlm",
    title="WeDLM",
    regime=Regime.STRICT_CAUSAL,
    shift=0,
    block_size=16,
    layout=Layout.CHAT,
    policy="confident",
    verifies=True,
    mask_tokens=("<|mask|>", "<|MASK|>"),
)
DREAM = Family(
    name="dream",
    title="Dream, Dream-Coder, DiffuCoder",
    regime=Regime.BIDIRECTIONAL,
    shift=1,
    block_size=32,
    layout=Layout.HOLE,
    policy="confident",
    end_tokens=("<|endoftext|>", "<|im_end|>"),
    qkv_bias=True,
)
DREAM_ON = replace(DREAM, name="dreamon", title="DreamOn")
OPEN_DCODER = replace(DREAM, name="open-dcoder", title="Open-dCoder", mask_tokens=("<M>", "<|mask|>", "[MASK]"))
TINY_A2D = Family(
    name="tiny-a2d",
    title="dllm Tiny-A2D (bd3lm)",
    regime=Regime.BLOCK_CAUSAL,
    shift=0,
    block_size=32,
    layout=Layout.CHAT,
    policy="confident",
)
TINY_A2D_MDLM = replace(
    TINY_A2D,
    name="tiny-a2d-mdlm",
    title="dllm Tiny-A2D (mdlm)",
    regime=Regime.BIDIRECTIONAL,
    layout=Layout.HOLE,
)
OURS = Family(
    name="remask",
    title="Remask's own (causal context, bidirectional canvas)",
    regime=Regime.CAUSAL,
    shift=1,
    block_size=8,
    layout=Layout.SUFFIX_PREFIX,
    policy="default",
    verifies=True,
    end_tokens=("<|endoftext|>",),
    prefix_tokens=1024,
    suffix_tokens=256,
    context_tokens=0,  # none of its prompts had other files
)
GEMMA = Family(
    name="diffusion-gemma",
    title="DiffusionGemma",
    regime=Regime.UNIFORM,
    shift=0,
    block_size=256,
    layout=Layout.CHAT,
    policy="entropy_bound",
    end_tokens=("<end_of_turn>", "<eos>"),
)

FAMILIES: Mapping[str, Family] = {
    "LlamaForCausalLM": OURS,
    "Qwen2ForCausalLM": replace(OURS, qkv_bias=True),
    "Qwen3ForCausalLM": replace(OURS, qk_norm=True),
    "Fast_dLLM_QwenForCausalLM": FAST_DLLM,
    "SDARForCausalLM": SDAR,
    "WeDLMForCausalLM": WEDLM,
    "DreamModel": DREAM,
    "DreamOnModel": DREAM_ON,
    "OpenDCoderForCausalLM": OPEN_DCODER,
    "A2DQwen2LMHeadModel": replace(TINY_A2D, qkv_bias=True),
    "A2DQwen3LMHeadModel": replace(TINY_A2D, qk_norm=True),
    "A2DLlamaLMHeadModel": TINY_A2D,
    "DiffusionGemmaForBlockDiffusion": GEMMA,
}


def family_of(config: Config, folder: Path) -> Family:
    """The family that a checkpoint belongs to. Raises ModelError for one that Remask cannot run."""
    listed = config.get("architectures")
    listed = [listed] if isinstance(listed, str) else listed
    named = str(listed[0]) if isinstance(listed, list) and listed else "none"
    if named not in FAMILIES:
        if "auto_map" in config:
            raise ModelError(
                f"The checkpoint's architecture {named} runs code of its own, and Remask never does that.",
                advice=f"Remask runs {', '.join(FAMILIES)}.",
            )
        raise ModelError(f"Remask cannot run the architecture {named}.", advice=f"It runs {', '.join(FAMILIES)}.")
    family = FAMILIES[named]
    if family.name == "dream" and "expand_token_id" in config:
        return DREAM_ON
    if family.name == "tiny-a2d" and "mdlm" in f"{folder.name} {config.get('_name_or_path', '')}".lower():
        return replace(TINY_A2D_MDLM, qkv_bias=family.qkv_bias, qk_norm=family.qk_norm)
    if family.name == "remask" and "remask" not in config:
        if "mask_token_id" in config:  # a plain architecture with a mask: masked diffusion over the whole row
            return replace(OPEN_DCODER, qkv_bias=family.qkv_bias, qk_norm=family.qk_norm)
        raise ModelError(
            f"The checkpoint in {folder} is autoregressive and was not adapted to denoising.",
            advice='An adapted one says how it denoises in a "remask" section of its config.json.',
        )
    return family
