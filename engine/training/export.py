"""Makes of a training run what people load: an adapter folder over its base, or a whole model with int8 rows.

Knows the run's files and the base's; the card, the shards and the figures are written elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remask.contract.errors import InputError
from remask.engine.models import adapter as adapters
from remask.engine.models.adapter import Adapter, adapters_over, digest_of, read_adapter, read_updates
from remask.engine.models.checkpoint import read_tokenizer, read_weights, stored_tensors
from remask.engine.models.choice import find_model
from remask.engine.models.config import read_json
from remask.engine.models.facts import licence_of
from remask.engine.models.lowrank import LowRank
from remask.engine.models.read_spec import read_spec
from remask.engine.models.shards import SUMS
from remask.engine.models.spec import ModelSpec
from remask.engine.training.card import Card, render_card
from remask.engine.training.figures import Column, read_figures
from remask.engine.training.finished import Run, read_run
from remask.engine.training.folders import new_folder, refuse_filled, write_sums
from remask.engine.training.hardware import describe_hardware
from remask.engine.training.network import LORA_A, LORA_B
from remask.engine.training.quantised import balanced, int8_rows, save_tensors, write_shards

BESIDE = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "LICENSE")
CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """What to export. `base`: what the run was trained on, the model in use where None. `name`: "" makes one up.

    `merge`: a whole model even where the run learned an adapter. `figures`: files of `remask eval --json`.
    `replace`: an adapter that was exported to `out` before makes room.
    """

    run: Path
    out: Path
    base: Path | None = None
    name: str = ""
    merge: bool = False
    figures: tuple[Path, ...] = ()
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: "adapter" or "model", under which name, and the weights' size in bytes."""

    folder: Path
    form: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class _Base:
    """The checkpoint that was trained on, with the adapter that it carries."""

    folder: Path
    spec: ModelSpec
    carried: list[Adapter]
    shapes: dict[str, tuple[int, ...]]

    @property
    def name(self) -> str:
        return self.carried[-1].title(self.spec.name) if self.carried else self.spec.name


def export_run(request: ExportRequest) -> Exported:
    """Write the run's newest checkpoint for others. Raises RemaskError; nothing half-written is left."""
    replace = request.replace and all((request.out / name).is_file() for name in (adapters.CONFIG, SUMS))
    if not replace:
        refuse_filled(request.out)
    figures = [column for path in request.figures for column in read_figures(path)]
    run = read_run(request.run)
    base = _as_trained(_read_base(request.base), run)
    _refuse_other_base(run, base)
    name = " ".join(request.name.split())[:80] or f"{base.name}-trained"
    whole = request.merge or not run.recipe.rank
    with new_folder(request.out, replace=replace) as folder:
        files = _write_model(folder, run, base, name) if whole else _write_adapter(folder, run, base, name)
        size = sum((folder / file).stat().st_size for file in files if file.endswith(".safetensors"))
        form = "model" if whole else "adapter"
        card = _card(run, base, name, form, size, figures)
        (folder / "README.md").write_text(render_card(card), encoding="utf-8")
        write_sums(folder, files)
    return Exported(request.out, form, name, size)


def _read_base(source: Path | None) -> _Base:
    folder = find_model(source)
    spec = read_spec(folder, read_tokenizer(folder))
    if "remask" not in read_json(folder / "config.json"):
        raise InputError(
            f"The checkpoint in {folder} has no section of Remask's own, so nothing was trained on it.",
            advice="Name with --base what the run was trained on.",
        )
    return _Base(folder, spec, adapters_over(folder), stored_tensors(folder, spec.shape))


def _as_trained(base: _Base, run: Run) -> _Base:
    """The base with as many of its adapters as the run had: a run that went on from one is beside it, not over it."""
    for count in range(len(base.carried), -1, -1):
        if digest_of(base.folder, base.carried[:count]) == run.facts.get("base_sha256"):
            return replaced(base, carried=base.carried[:count])
    return base


def _refuse_other_base(run: Run, base: _Base) -> None:
    """Raise InputError unless what was learned fits the base, tensor by tensor, and is said to belong to it."""
    said, digest = run.facts.get("base"), run.facts.get("base_sha256")
    with run.learned() as file:
        learned = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - no mapping
    rank = run.recipe.rank
    if rank:
        stems = {name.removesuffix(part) for name in learned for part in (LORA_A, LORA_B) if name.endswith(part)}
        wanted: dict[str, tuple[int, ...]] = {}
        for stem in stems & {name.removesuffix(".weight") for name in base.shapes}:
            out, width = base.shapes[f"{stem}.weight"]
            wanted |= {stem + LORA_A: (rank, width), stem + LORA_B: (out, rank)}
    else:
        wanted = base.shapes
    another = (
        digest != digest_of(base.folder, base.carried) if digest else said not in (None, base.name, base.spec.name)
    )
    if another or learned != wanted or not learned:
        raise InputError(
            f"The run in {run.checkpoint.parent} was trained on another model than {base.name}.",
            advice="Name with --base what it was trained on.",
        )


def _write_adapter(folder: Path, run: Run, base: _Base, name: str) -> list[str]:
    """Write the adapter's two files and read them back; their names."""
    with run.learned() as file:
        stored: dict[str, Tensor] = {}
        for stem in _stems(run):
            a, b = balanced(file.get_tensor(stem + LORA_A), file.get_tensor(stem + LORA_B))
            stored |= int8_rows(adapters.PREFIX + stem + LORA_A, a) | int8_rows(adapters.PREFIX + stem + LORA_B, b)
    save_tensors(stored, folder / adapters.WEIGHTS)
    _write_json(folder / adapters.CONFIG, _adapter_config(run, base, name))
    read_updates([read_adapter(folder)], base.shapes)
    return [adapters.CONFIG, adapters.WEIGHTS]


def _adapter_config(run: Run, base: _Base, name: str) -> dict[str, Any]:
    rank = run.recipe.rank
    digest = digest_of(base.folder, base.carried)
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base.name,
        "r": rank,
        "lora_alpha": rank,  # the product is added as it is
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({stem.rpartition(".")[2] for stem in _stems(run)}),
        "inference_mode": True,
        "remask": {"name": name, "rows": "int8", "base": {"name": base.name, "sha256": digest}},
    }


def _write_model(folder: Path, run: Run, base: _Base, name: str) -> list[str]:
    """Write a whole checkpoint; the names of the files that are summed."""
    if run.recipe.rank:
        weights = _merged(run, base)

        def read(wanted: str) -> dict[str, Tensor]:
            return {n: weights[n] for n in (wanted, f"{wanted}_scale") if n in weights}

        shards = write_shards(folder, base.shapes, read)
    else:
        with run.learned() as file:
            shards = write_shards(folder, base.shapes, lambda wanted: int8_rows(wanted, file.get_tensor(wanted)))
    config = read_json(base.folder / "config.json")
    config.pop("_name_or_path", None)  # it may be a path
    config["remask"] = config["remask"] | {"name": name}
    _write_json(folder / "config.json", config)
    for beside in BESIDE:
        if (base.folder / beside).is_file():
            shutil.copyfile(base.folder / beside, folder / beside)
    read_spec(folder, read_tokenizer(folder))
    return [*shards, "tokenizer.json"]


def _merged(run: Run, base: _Base) -> dict[str, Tensor]:
    """The base's weights with what it carries and what was learned added: int8 rows, scales, the rest float32."""
    updates = read_updates(base.carried, base.shapes)
    with run.learned() as file:
        for stem in _stems(run):
            pair = LowRank(file.get_tensor(stem + LORA_A), file.get_tensor(stem + LORA_B))
            updates.setdefault(f"{stem}.weight", []).append(pair)
    return read_weights(base.folder, base.spec.shape, dtype=torch.int8, device=CPU, updates=updates)


def _stems(run: Run) -> list[str]:
    with run.learned() as file:
        return sorted(name.removesuffix(LORA_A) for name in file.keys() if name.endswith(LORA_A))  # noqa: SIM118


def _card(run: Run, base: _Base, name: str, form: str, size: int, figures: list[Column]) -> Card:
    recorded = run.facts.get("hardware")
    return Card(
        name=name,
        form=form,
        base=base.name,
        origin=_origin(base.folder),
        licence=licence_of(base.folder).partition(" (")[0],
        size=size,
        facts=run.facts,
        recipe=run.recipe.to_dict(),
        records=run.records,
        hardware=recorded if isinstance(recorded, Mapping) else describe_hardware(),
        hardware_is_runs=isinstance(recorded, Mapping),
        figures=figures,
    )


def _origin(folder: Path) -> str:
    """What the base's own card says that it was made from, "" where it does not; never a path."""
    try:
        head = (folder / "README.md").read_text(encoding="utf-8", errors="replace")[:4000]
    except OSError:
        return ""
    found = re.search(r"^base_model:\s*([\w.-]+(?:/[\w.-]+)?)\s*$", head, re.MULTILINE)
    return found[1] if found else ""


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
