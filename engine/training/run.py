"""A training run from a checkpoint folder and a corpus: put together, logged line by line, resumed where it stopped.

Knows folders; what is shown on the way is the caller's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from remask.contract.errors import InputError, StorageError
from remask.engine.models.adapter import Adapter, adapters_over, digest_of, read_merged, read_updates
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.choice import find_model
from remask.engine.models.model import choose_device, choose_dtype
from remask.engine.models.read_spec import read_spec
from remask.engine.models.spec import ModelSpec, Regime
from remask.engine.training.batches import Batches
from remask.engine.training.corpus.store import Corpus, load_corpus
from remask.engine.training.hardware import describe_hardware
from remask.engine.training.network import LORA_A, LORA_B, Network
from remask.engine.training.recipe import Recipe
from remask.engine.training.trainer import Plan, Record, Trainer

LOG = "log.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to train on what. `start`: an adapter of the recipe's rank that is trained further, not merged."""

    out: Path
    corpus: Path
    recipe: Recipe
    plan: Plan
    model: Path | None = None
    device: str = "auto"
    dtype: str = "auto"
    start: Path | None = None


def open_run(request: RunRequest) -> Trainer:
    """A trainer that stands where the run's last checkpoint left it, or at its beginning.

    Raises ModelError, InputError or StorageError.
    """
    base = find_model(request.model)
    tokenizer = read_tokenizer(base)
    spec = read_spec(base, tokenizer)
    if spec.regime is not Regime.CAUSAL:
        raise InputError(f"Remask trains checkpoints with a causal context, and {spec.name} is {spec.regime}.")
    corpus = load_corpus(request.corpus, hashlib.sha256((base / "tokenizer.json").read_bytes()).hexdigest())
    _refuse_unfit(corpus, spec, request.recipe)
    device = choose_device(request.device)
    carried = adapters_over(base, request.start)
    begun = [carried.pop()] if request.start is not None else []
    weights = read_merged(base, spec.shape, carried, dtype=torch.float32, device=device)
    network = Network(
        spec.shape,
        weights,
        rank=request.recipe.rank,
        dtype=choose_dtype(request.dtype, device),
        seed=request.recipe.seed,
    )
    _begin_with(network, begun, {name: tuple(w.shape) for name, w in weights.items()})
    validation = corpus.splits.get("validation")
    trainer = Trainer(
        network,
        Batches(corpus.splits["train"], request.recipe, spec.mask_id),
        Batches(validation, request.recipe, spec.mask_id)
        if validation is not None and len(validation.tokens)
        else None,
        request.recipe,
        request.out,
        about={
            "base": spec.name,
            "base_sha256": digest_of(base, carried),
            "dtype": str(network.dtype).removeprefix("torch."),
            "corpus": _about(corpus),
            "hardware": describe_hardware(),
        },
    )
    trainer.resume()
    return trainer


@contextmanager
def logged(folder: Path, step: int) -> Iterator[Callable[[Record], None]]:
    """Append records to the run's log; lines of steps that were lost with an interruption are cut off first.

    Raises StorageError where the disk refuses.
    """
    path = folder / LOG
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = [r for r in read_log(folder) if r["step"] <= step] if path.is_file() else []
        unfinished = folder / f".{LOG}.{os.getpid()}"
        unfinished.write_text("".join(json.dumps(r) + "\n" for r in kept), encoding="utf-8")
        os.replace(unfinished, path)
        with path.open("a", encoding="utf-8") as file:

            def write(record: Record) -> None:
                file.write(json.dumps(record.to_dict()) + "\n")
                file.flush()

            yield write
    except OSError as error:
        raise StorageError(f"The log in {folder} cannot be written: {error.strerror or error}.") from error


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The records of a run, oldest first; a last line that was cut off is left out. Raises InputError."""
    try:
        lines = (folder / LOG).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"There is no log of a training run in {folder}.") from None
    records = []
    for number, line in enumerate(lines):
        try:
            record = dict(json.loads(line))
            if "kind" not in record or not isinstance(record.get("step"), int):
                raise ValueError("no line of a run's")
            records.append(record)
        except (ValueError, TypeError):
            if number + 1 < len(lines):
                raise InputError(f"Line {number + 1} of the log in {folder} cannot be read.") from None
    return records


def _begin_with(network: Network, begun: Sequence[Adapter], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Put an adapter's pairs in the place of the fresh ones; its rows of A get their length, which the rate fits."""
    for name, updates in read_updates(begun, shapes).items():
        stem, pair = name.removesuffix(".weight"), updates[0]
        length = pair.a.norm(dim=1).clamp_min(torch.finfo(torch.float32).tiny)  # [rank]
        for half, matrix in ((LORA_A, pair.a / length[:, None]), (LORA_B, pair.b * length)):
            learned = network.learned.get(stem + half)
            if learned is None or learned.shape != matrix.shape:
                raise InputError(
                    f"The adapter {begun[0].name} does not fit this run: {stem} has another rank.",
                    advice=f"Train with its own: --set rank={begun[0].rank}.",
                )
            learned.data.copy_(matrix)


def _refuse_unfit(corpus: Corpus, spec: ModelSpec, recipe: Recipe) -> None:
    train = corpus.splits.get("train")
    if train is None or not len(train.tokens):
        raise InputError(f"The corpus in {corpus.folder} has no rows to train on.", advice="Give it more code.")
    if train.tokens.shape[1] <= recipe.block:
        raise InputError(f"Canvases of {recipe.block} do not fit rows of {train.tokens.shape[1]} tokens.")
    if int(train.tokens.max()) >= spec.shape.vocab:
        raise InputError(f"The corpus in {corpus.folder} holds tokens that {spec.name} does not have.")


def _about(corpus: Corpus) -> dict[str, Any]:
    """What a model card says of a corpus; no paths."""
    manifest = corpus.manifest
    packages = manifest.get("packages", [])
    return {
        "splits": {n: {"rows": s["rows"], "tokens": s["tokens"]} for n, s in manifest["splits"].items()},
        "packages": len(packages),
        "licences": sorted({str(p.get("licence")) for p in packages if p.get("licence")}),
        "row_tokens": manifest["row_tokens"],
    }
