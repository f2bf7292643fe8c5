"""Makes a plain autoregressive checkpoint trainable: the same weights, and a config.json that says how it will denoise.

The new folder holds hard links (or copies) of the weights. Knows the files; trains nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from remask.contract.errors import InputError, ModelError
from remask.engine.models.checkpoint import read_tokenizer, stored_tensors
from remask.engine.models.choice import find_model
from remask.engine.models.config import dense_shape, read_json
from remask.engine.models.families import FAMILIES, OURS
from remask.engine.models.read_spec import model_name, read_spec
from remask.engine.models.shards import INDEX, SUMS, shards_of
from remask.engine.models.spec import ModelSpec
from remask.engine.training.folders import new_folder, refuse_filled

PREFIX_MARKS = ("<|prefix|>", "<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<|fim_begin|>", "<PRE>", "<pre>")
SUFFIX_MARKS = ("<|suffix|>", "<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<|fim_hole|>", "<SUF>", "<suf>")
MASKS = ("<|mask|>", "<|MASK|>", "|<MASK>|", "<mask>", "<MASK>", "[MASK]", "<M>", "<|fim_pad|>", "<fim_pad>")
_RESERVED = re.compile(r"reserved|unused|placeholder|extra_(id|token)", re.IGNORECASE)
_IN_USE = re.compile(
    r"^(</?s>|<unk>|<pad>|<bos>|<eos>)$|endoftext|end_of_text|begin_of_text|im_start|im_end|eot|header"
)
_BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "LICENSE", "README.md")
SHOWN = 12  # candidates named in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Tokens by their text, "" where the tokenizer's own are to be found."""

    mask: str = ""
    prefix: str = ""
    suffix: str = ""


def prepare(source: str | Path, out: Path, *, marks: Marks | None = None, name: str = "") -> ModelSpec:
    """Write the trainable folder; what it is. Raises RemaskError; nothing half-written is left."""
    refuse_filled(out)
    folder = find_model(source)
    config = read_json(folder / "config.json")
    _refuse_trained(folder, config)
    tokenizer = read_tokenizer(folder)
    _check_weights(folder, config)
    room = int(config["vocab_size"])
    chosen = choose_marks(tokenizer, marks or Marks(), room)
    own = {
        "name": " ".join((name or model_name(folder)).split())[:80],
        "regime": OURS.regime.value,
        "block_size": OURS.block_size,
        "shift": OURS.shift,
        "verifies": OURS.verifies,
        "layout": OURS.layout.value,
        "mask_token": chosen.mask,
        "prefix_token": chosen.prefix,
        "suffix_token": chosen.suffix,
    }
    with new_folder(out) as unfinished:
        _link_files(folder, unfinished)
        _write_tokenizer(folder, unfinished, tokenizer, chosen, room)
        config.pop("_name_or_path", None)
        (unfinished / "config.json").write_text(json.dumps(config | {"remask": own}, indent=1) + "\n", encoding="utf-8")
        return read_spec(unfinished, read_tokenizer(unfinished))


def choose_marks(tokenizer: Tokenizer, named: Marks, room: int) -> Marks:
    """Three different tokens: the named ones, else those that the tokenizer has for it. `room`: rows of the embedding.

    A named token that the tokenizer lacks will be added where the embedding has a row to spare. Raises InputError with
    the candidates where one is neither named nor found.
    """
    found = {
        "prefix": named.prefix or _first(tokenizer, PREFIX_MARKS),
        "suffix": named.suffix or _first(tokenizer, SUFFIX_MARKS),
    }
    found["mask"] = named.mask or _first(tokenizer, MASKS) or _reserved(tokenizer, set(found.values()))
    spare = room - tokenizer.get_vocab_size(with_added_tokens=True)
    lacking = [f"--{part}-token" for part in ("mask", "prefix", "suffix") if not found[part]]
    if lacking:
        free = candidates(tokenizer, found.values())
        listed = f"Its special tokens without a common use: {', '.join(free[:SHOWN])}." if free else ""
        added = f" {spare} new ones would fit as well." if spare > 0 else ""
        raise InputError(
            f"The tokenizer has no marks for infilling that Remask knows: name {' and '.join(lacking)}.",
            advice=(listed or "It has no special token without a common use.") + added,
        )
    if len(set(found.values())) < len(found):
        raise InputError("The mask, the prefix mark and the suffix mark have to be three different tokens.")
    fresh = [t for t in found.values() if tokenizer.token_to_id(t) is None]
    if len(fresh) > max(0, spare):
        raise InputError(
            f"The tokenizer has no token {fresh[0]!r}, and the embedding no row to spare for it.",
            advice=f"Name one of {', '.join(candidates(tokenizer, found.values())[:SHOWN]) or 'its own tokens'}.",
        )
    outside = [t for t in found.values() if (tokenizer.token_to_id(t) or 0) >= room]
    if outside:
        raise InputError(f"The token {outside[0]!r} has no row in the embedding.", advice="Name another one.")
    return Marks(**found)


def candidates(tokenizer: Tokenizer, taken: Iterable[str]) -> list[str]:
    """Special tokens that neither end, begin nor pad texts nor mark turns of a chat, in the order of their ids."""
    special = [t.content for _, t in sorted(tokenizer.get_added_tokens_decoder().items()) if t.special]
    return [t for t in special if t not in set(taken) and not _IN_USE.search(t)]


def _refuse_trained(folder: Path, config: dict[str, Any]) -> None:
    """Raise InputError for what denoises already or is of another shape."""
    if "remask" in config:
        raise InputError(
            f"The checkpoint in {folder} is prepared already.", advice="Train it as it is: name it with --model."
        )
    listed = config.get("architectures")
    architecture = str(listed[0]) if isinstance(listed, list) and listed else str(listed or "none")
    family = FAMILIES.get(architecture)
    if family is not None and (family.name != OURS.name or "mask_token_id" in config):
        raise InputError(f"The checkpoint in {folder} denoises already ({architecture}); only plain ones are prepared.")
    if family is None:
        plain = ", ".join(a for a, f in FAMILIES.items() if f.name == OURS.name)
        raise InputError(f"Remask cannot train the architecture {architecture}.", advice=f"It trains {plain}.")


def _check_weights(folder: Path, config: dict[str, Any]) -> None:
    """Raise ModelError where the shapes cannot be computed with, or tensors are missing or unknown."""
    family = FAMILIES[config["architectures"][0]]
    try:
        shape = dense_shape(config, qkv_bias=family.qkv_bias, qk_norm=family.qk_norm)
    except KeyError as error:
        raise ModelError(f"The config.json in {folder} lacks {error.args[0]!r}.") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"The config.json in {folder} has a wrong value: {error}.") from None
    stored = {name.removesuffix("_scale") for names in shards_of(folder).values() for name in names}
    wanted = stored_tensors(folder, shape).keys()
    for odd in sorted(wanted - stored):
        raise ModelError(f"The checkpoint in {folder} lacks {odd!r}.")
    for odd in sorted(stored - wanted):
        raise ModelError(f"The checkpoint in {folder} holds {odd!r}, which Remask does not compute with.")


def _link_files(source: Path, target: Path) -> None:
    """Hard-link or copy the weights; copy what is small."""
    shards = list(shards_of(source))
    for path in shards:
        if not path.is_file():
            raise ModelError(f"The weight shard {path} is missing.", advice="Name a whole checkpoint.")
        try:
            os.link(path.resolve(), target / path.name)
        except OSError:  # another disk, or a file system without links
            shutil.copyfile(path, target / path.name)
    for name in (INDEX, *_BESIDE):
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    if (source / SUMS).is_file():
        kept = {path.name for path in shards}
        lines = (source / SUMS).read_text(encoding="utf-8").splitlines(keepends=True)
        (target / SUMS).write_text("".join(n for n in lines if n.rstrip("\n").partition("  ")[2] in kept), "utf-8")


def _write_tokenizer(source: Path, target: Path, tokenizer: Tokenizer, marks: Marks, room: int) -> None:
    wanted = (marks.mask, marks.prefix, marks.suffix)
    fresh = [AddedToken(t, special=True, normalized=False) for t in wanted if tokenizer.token_to_id(t) is None]
    if not fresh:
        shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")
        return
    tokenizer.add_special_tokens(fresh)
    if tokenizer.get_vocab_size(with_added_tokens=True) > room:
        raise InputError("The embedding has no rows to spare for new tokens.", advice="Name tokens that there are.")
    tokenizer.encode_special_tokens = False  # as it was in the file
    tokenizer.save(str(target / "tokenizer.json"))


def _first(tokenizer: Tokenizer, names: Iterable[str]) -> str:
    return next((name for name in names if tokenizer.token_to_id(name) is not None), "")


def _reserved(tokenizer: Tokenizer, taken: set[str]) -> str:
    return next((token for token in candidates(tokenizer, taken) if _RESERVED.search(token)), "")
