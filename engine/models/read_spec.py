"""Reads a checkpoint's spec: what its files say wins over what its family does by habit.

A "remask" section in `config.json` overrides any value of the family. Knows files and families; runs nothing of a
checkpoint's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from remask.contract.errors import ModelError
from remask.engine.models.config import Config, dense_shape, positive, read_json
from remask.engine.models.families import DREAM_ON, GEMMA, Family, family_of
from remask.engine.models.gemma import chat_end_ids, gemma_spec
from remask.engine.models.spec import Layout, ModelSpec, Regime


def read_spec(folder: Path, tokenizer: Tokenizer) -> ModelSpec:
    """The spec of the checkpoint in `folder`.

    Raises ModelError where its files are missing or damaged, name an architecture that Remask cannot run,
    lack a value or a token, or hold a wrong one.
    """
    config = read_json(folder / "config.json")
    if (folder / "generation_config.json").is_file():
        generation = read_json(folder / "generation_config.json")
        config = _merged(generation, config)
    family = family_of(config, folder)
    own = config.get("remask", {})
    if not isinstance(own, Mapping):
        raise ModelError(f'The "remask" section of {folder / "config.json"} is not an object.')
    try:
        if family is GEMMA:
            return gemma_spec(model_name(folder), config, chat_end_ids(config, tokenizer))
        return _checked(_spec(family, config, own, tokenizer, folder))
    except KeyError as error:
        raise ModelError(f"The config.json in {folder} lacks {error.args[0]!r}.") from None
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ModelError(f"The config.json in {folder} has a wrong value: {error}.") from None


def model_name(folder: Path) -> str:
    """What a checkpoint is called: `organisation/name` in a hub cache, else its folder's name."""
    folder = folder.resolve()
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    return folder.name


def _merged(generation: Config, config: Config) -> dict[str, Any]:
    """Both files' values: config.json wins, a null says nothing, and every end token named in either counts."""
    merged = {k: v for part in (generation, config) for k, v in part.items() if v is not None}
    ends = [part.get("eos_token_id") for part in (config, generation)]
    listed = [i for end in ends if end is not None for i in (end if isinstance(end, list) else [end])]
    return merged | ({"eos_token_id": listed} if listed else {})


def _checked(spec: ModelSpec) -> ModelSpec:
    """Refuse combinations that would compute nonsense. Raises ValueError."""
    shift = {Regime.CAUSAL: 1, Regime.STRICT_CAUSAL: 0}.get(spec.regime, spec.shift)
    if spec.shift not in (0, 1) or spec.shift != shift:
        raise ValueError(f"logits of a {spec.regime} checkpoint are not shifted by {spec.shift}")
    if spec.regime is Regime.UNIFORM:
        raise ValueError("only DiffusionGemma has a canvas of random tokens")
    if spec.verifies and spec.regime not in (Regime.CAUSAL, Regime.STRICT_CAUSAL):
        raise ValueError(f"a {spec.regime} checkpoint cannot verify")
    if not 0 <= spec.sub_block <= spec.block_size <= spec.shape.max_positions // 4:
        raise ValueError(f"blocks of {spec.block_size} ({spec.sub_block}) in {spec.shape.max_positions} positions")
    if spec.mask_id in spec.end_ids:
        raise ValueError("the mask token also ends a text")
    if not all(0 <= i < spec.shape.vocab for i in (*spec.end_ids, spec.mask_id)):
        raise ValueError("a mask or end token is outside the vocabulary")
    return spec


def _spec(family: Family, config: Config, own: Mapping[str, Any], tokenizer: Tokenizer, folder: Path) -> ModelSpec:
    layout = Layout(own.get("layout", family.layout))
    marks = _marks(layout, own, tokenizer)
    shape = dense_shape(config, qkv_bias=family.qkv_bias, qk_norm=family.qk_norm)
    names = ("prefix_tokens", "suffix_tokens", "context_tokens")
    windows = {name: getattr(family, name) for name in names} | dict(own)
    return ModelSpec(
        name=" ".join(str(own.get("name") or model_name(folder)).split())[:80],
        family=family.name,
        shape=shape,
        regime=Regime(own.get("regime", family.regime)),
        block_size=positive({"block_size": _block_size(family, config, own)}, "block_size"),
        shift=int(own.get("shift", family.shift)),
        verifies=_flag(own.get("verifies", family.verifies)),
        mask_id=_mask_id(family, config, own, tokenizer),
        end_ids=_end_ids(family, config, own, tokenizer),
        layout=layout,
        expand_id=int(config.get("expand_token_id", -1)) if family is DREAM_ON else -1,
        delete_id=int(config.get("delete_token_id", -1)) if family is DREAM_ON else -1,
        sub_block=int(own.get("sub_block", family.sub_block)),
        policy=str(own.get("policy", family.policy)),
        prefix_tokens=min(shape.max_positions // 2, positive(windows, "prefix_tokens")),
        suffix_tokens=min(shape.max_positions // 8, positive(windows, "suffix_tokens")),
        context_tokens=min(shape.max_positions // 8, int(windows["context_tokens"])),
        prefix_id=marks.get("prefix_id", -1),
        suffix_id=marks.get("suffix_id", -1),
        middle_id=marks.get("middle_id", -1),
    )


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"verifies is true or false, not {value!r}")
    return value


def _block_size(family: Family, config: Config, own: Mapping[str, Any]) -> Any:
    named = next((config[n] for n in family.block_names if n in config), family.block_size)
    return own.get("block_size", named)


def _mask_id(family: Family, config: Config, own: Mapping[str, Any], tokenizer: Tokenizer) -> int:
    """The mask token: by the checkpoint's id, else by its name. Never by the family's usual id."""
    if "mask_token" in own:
        return _token(tokenizer, own["mask_token"])
    said = config.get("mask_token_id")
    named = next((i for t in family.mask_tokens if (i := tokenizer.token_to_id(t)) is not None), None)
    if said is None and named is None:
        raise ModelError(
            f"The checkpoint names no mask token: config.json has no mask_token_id, the tokenizer no "
            f"{' and no '.join(family.mask_tokens)}."
        )
    chosen = named if said is None else said
    if not isinstance(chosen, int) or isinstance(chosen, bool):
        raise ValueError(f"mask_token_id is a whole number, not {chosen!r}")
    if not 0 <= chosen < positive(config, "vocab_size"):
        raise ValueError(f"mask_token_id {chosen} is outside the vocabulary")
    return chosen


def _end_ids(family: Family, config: Config, own: Mapping[str, Any], tokenizer: Tokenizer) -> tuple[int, ...]:
    """Tokens that end the text: what the checkpoint says and what its family ends a turn with."""
    if "end_tokens" in own:
        if not isinstance(own["end_tokens"], list) or not own["end_tokens"]:
            raise ValueError("end_tokens is a list of tokens")
        return tuple(_token(tokenizer, t) for t in own["end_tokens"])
    said = config.get("eos_token_id")
    ids = [said] if isinstance(said, int) else list(said or [])
    ids += [i for t in family.end_tokens if (i := tokenizer.token_to_id(t)) is not None]
    if not ids:
        raise ModelError("The checkpoint names no token that ends a text.")
    return tuple(dict.fromkeys(int(i) for i in ids))


def _marks(layout: Layout, own: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, int]:
    """Ids of the marks that the prompt's layout needs."""
    if layout is Layout.SUFFIX_PREFIX:
        names = {"prefix_id": own["prefix_token"], "suffix_id": own["suffix_token"]}
    elif layout is Layout.FIM:
        names = {"prefix_id": "<|fim_prefix|>", "suffix_id": "<|fim_suffix|>", "middle_id": "<|fim_middle|>"}
    else:
        names = {}
    return {field: _token(tokenizer, name) for field, name in names.items()}


def _token(tokenizer: Tokenizer, text: str) -> int:
    found = tokenizer.token_to_id(text)
    if found is None:
        raise ModelError(f"The checkpoint's tokenizer has no token {text!r}.")
    return int(found)
