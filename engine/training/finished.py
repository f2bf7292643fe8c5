"""A training run as it is read afterwards: its newest whole checkpoint, its facts and its log. Trains nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from remask.contract.errors import InputError
from remask.engine.training import checkpoints
from remask.engine.training.recipe import Recipe
from remask.engine.training.run import LOG, read_log

NUMBERS = ("step", "tokens", "seconds")  # that every run's facts and every log record hold


@dataclass(frozen=True, slots=True)
class Run:
    """A checkpoint's folder, its facts, its recipe, and the log's records up to its step, each step once a kind."""

    checkpoint: Path
    facts: Mapping[str, Any]
    recipe: Recipe
    records: list[dict[str, Any]]

    @contextmanager
    def learned(self) -> Iterator[safe_open]:
        """The open file of what was learned, read tensor by tensor. Raises InputError where it is damaged."""
        try:
            with safe_open(str(self.checkpoint / checkpoints.LEARNED), framework="pt", backend="pread") as file:
                yield file
        except (OSError, SafetensorError) as error:
            raise InputError(f"The checkpoint {self.checkpoint} cannot be read: {error}.") from None


def read_run(folder: Path) -> Run:
    """The newest whole checkpoint of the run in `folder`. Raises InputError where there is none, or it is damaged."""
    found = checkpoints.whole(folder)
    if not found:
        raise InputError(
            f"There is no finished checkpoint in {folder}.", advice="Name the folder that a training run was saved in."
        )
    path = found[-1]
    try:
        facts = json.loads((path / checkpoints.FACTS).read_text(encoding="utf-8"))
        if facts["format"] != checkpoints.FORMAT:
            raise InputError(f"The checkpoint {path} has a format that this version does not read.")
        if not all(isinstance(facts[name], int | float) for name in NUMBERS):
            raise ValueError("its facts are not numbers")
        recipe = Recipe.from_dict(facts["recipe"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"The checkpoint {path} cannot be read: {error}.") from None
    return Run(path, facts, recipe, _records(folder, facts["step"]))


def _records(folder: Path, until: int) -> list[dict[str, Any]]:
    """The log's records up to a step; of steps that were done twice, as after a crash, the later ones."""
    found = read_log(folder) if (folder / LOG).is_file() else []
    records = {
        (str(r.get("kind")), r["step"]): r for r in found if isinstance(r.get("step"), int) and r["step"] <= until
    }
    return sorted(records.values(), key=lambda r: r["step"])
