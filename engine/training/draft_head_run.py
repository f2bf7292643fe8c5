"""From a checkpoint, an adapter and a corpus to a draft head's file. Knows folders; learns nothing itself."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remask.contract.errors import InputError
from remask.engine.models.adapter import adapters_over, digest_of, read_merged
from remask.engine.models.checkpoint import HEAD
from remask.engine.models.choice import find_adapter, find_model
from remask.engine.models.draft_head import FILE
from remask.engine.models.model import Model
from remask.engine.models.processor import has_bfloat16
from remask.engine.models.spec import ModelSpec, Regime
from remask.engine.training.corpus.store import Corpus, SplitRows, load_corpus
from remask.engine.training.corrector_run import check_writable
from remask.engine.training.draft_head import HeadRecipe, HeadRecord, HeadTrainer, frequent_tokens
from remask.engine.training.draft_states import Chunk, States

EMBEDDING, NORM = "model.embed_tokens.weight", "model.norm.weight"
Progress = Callable[[str, float], None]  # a stage's name, and how much of it is done, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRequest:
    """What to train a head for. `out`: a file, or a folder for `draft_head.safetensors`.

    `model`: the checkpoint, the one in use where None. `adapter`: merged into it. Ends after `minutes` of learning or
    `steps`, what comes first; 0 is never.
    """

    corpus: Path
    out: Path
    recipe: HeadRecipe = field(default_factory=HeadRecipe)
    minutes: float = 0.0
    steps: int = 0
    model: Path | None = None
    adapter: Path | None = None
    device: str = "auto"
    dtype: str = "auto"


def make_draft_head(request: HeadRequest, progress: Progress = lambda *_: None) -> tuple[Path, dict[str, Any]]:
    """Train a head and write it; returns the file and its facts.

    Raises InputError, ModelError or StorageError; nothing half-written is left.
    """
    if request.minutes <= 0 and request.steps <= 0:
        raise InputError("Training a head needs an end.", advice="Give --minutes or --steps.")
    path, recipe = check_writable(request.out, FILE), request.recipe
    folder = find_model(request.model)
    model = Model.load(folder, adapter=request.adapter, device=request.device, dtype=request.dtype)
    if model.spec.regime is not Regime.CAUSAL or not model.spec.verifies:
        raise InputError(f"A draft head's drafts are verified causally, and {model.spec.name} cannot do that.")
    corpus = load_corpus(request.corpus, hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest())
    train, validation = (_rows(corpus, name, model.spec) for name in ("train", "validation"))
    trainer = _trainer(request, folder, model, frequent_tokens(train, recipe.listed, model.spec.never))
    size = recipe.positions + trainer.overlap
    judged = States(validation, model.transformer, seed=recipe.seed, judged=True).chunks(size, trainer.overlap)
    held_out = _taken(judged, -(-recipe.held_out // recipe.positions), "held-out drafts", progress)
    begun, last = time.monotonic(), HeadRecord(0, 0.0, 0.0, 0.0)

    def on_step(record: HeadRecord) -> None:
        nonlocal last
        last = record
        progress("learning", record.done)

    chunks = States(train, model.transformer, seed=recipe.seed).chunks(size, trainer.overlap)
    count = -(-recipe.fitted // recipe.positions)
    first = _taken(chunks, min(count, request.steps or count), "first fit", progress)
    trainer.begin(first)
    steps = trainer.run(chain(first, chunks), request.steps, 60 * request.minutes, on_step)
    facts = {
        "model": model.spec.name,
        "base": digest_of(folder, adapters_over(folder, find_adapter(request.adapter, folder))),
        "agreement": trainer.agreement(held_out).to_dict(),
        "trained": {
            "steps": steps,
            "positions": steps * recipe.positions,
            "minutes": round((time.monotonic() - begun) / 60, 1),
            "last_loss": round(last.loss, 3),
        },
    }
    trainer.save(path, facts)
    return path, facts


def _trainer(request: HeadRequest, folder: Path, model: Model, tokens: Tensor) -> HeadTrainer:
    """Over the float weights: what the engine holds may be int8 rows."""
    device, adapters = model.transformer.device, adapters_over(folder, find_adapter(request.adapter, folder))
    sixteen = device.type == "cuda" or has_bfloat16()
    dtype = torch.bfloat16 if sixteen and request.dtype != "float32" else torch.float32
    weights = read_merged(folder, model.spec.shape, adapters, dtype=dtype, device=device)
    output = weights.get(HEAD, weights[EMBEDDING])
    return HeadTrainer(weights[EMBEDDING].clone(), output, weights[NORM], tokens, request.recipe, dtype)


def _taken(chunks: Iterator[Chunk], count: int, stage: str, progress: Progress) -> list[Chunk]:
    taken = []
    for chunk in islice(chunks, count):
        taken.append(chunk)
        progress(stage, len(taken) / count)
    return taken


def _rows(corpus: Corpus, name: str, spec: ModelSpec) -> SplitRows:
    rows = corpus.splits.get(name)
    if rows is None or not (rows.roles != 0).any():
        raise InputError(f"The corpus in {corpus.folder} has no {name} rows.", advice="Give it more code.")
    if int(rows.tokens.max()) >= spec.shape.vocab:
        raise InputError(f"The corpus in {corpus.folder} holds tokens that {spec.name} does not have.")
    return rows
