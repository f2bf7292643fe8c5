"""A training run on disk: what is learned, the optimiser's state and where the run stands.

A checkpoint is a folder that appears under its final name only when it is whole; the newest whole one is resumed.
Knows tensors by name; knows neither network nor data.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from remask.contract.errors import InputError
from remask.engine.training.folders import new_folder

FORMAT = 1
KEPT = 2  # the newest checkpoints of a run that stay
LEARNED, STATE, FACTS = "learned.safetensors", "optimizer.safetensors", "run.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run at the end of a step. `facts` are JSON values: the recipe, step, seconds and tokens so far."""

    learned: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    facts: dict[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint below `folder` and forget the oldest. Raises StorageError; the older ones then stay."""
    final = folder / f"step-{checkpoint.facts['step']:07d}"
    with new_folder(final, replace=True) as unfinished:
        save_file({n: t.detach().contiguous().cpu() for n, t in checkpoint.learned.items()}, unfinished / LEARNED)
        save_file({n: t.detach().contiguous().cpu() for n, t in checkpoint.optimizer.items()}, unfinished / STATE)
        facts = checkpoint.facts | {"format": FORMAT}
        (unfinished / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    for old in whole(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def whole(folder: Path) -> list[Path]:
    """The finished checkpoints below `folder`, the oldest first."""
    return sorted(p for p in folder.glob("step-*") if (p / FACTS).is_file()) if folder.is_dir() else []


def load(path: Path) -> Checkpoint:
    """Read one checkpoint. Raises InputError where it is damaged or of another format."""
    try:
        facts = json.loads((path / FACTS).read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise InputError(f"The checkpoint {path} has a format that this version does not read.")
        return Checkpoint(load_file(path / LEARNED), load_file(path / STATE), facts)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(
            f"The checkpoint {path} cannot be read: {error}.", advice="Remove it to go on from the one before it."
        ) from None
