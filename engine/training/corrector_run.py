"""From a checkpoint, an adapter or a run, and a corpus, to a corrector head's file. Knows folders; measures nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from remask.contract.errors import InputError, StorageError
from remask.engine.judge.corrector import FILE, Corrector, default_taps, save_corrector
from remask.engine.models.adapter import adapters_over, digest_of, read_merged
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.choice import find_model
from remask.engine.models.model import choose_device, choose_dtype
from remask.engine.models.read_spec import read_spec
from remask.engine.models.spec import ModelSpec, Regime
from remask.engine.training import checkpoints
from remask.engine.training.corpus.store import Corpus, SplitRows, load_corpus
from remask.engine.training.corrector import CorrectorPlan, Progress, train_corrector
from remask.engine.training.drafts import DraftOptions, Drafts
from remask.engine.training.finished import Run, read_run
from remask.engine.training.network import LORA_A, LORA_B, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectorRequest:
    """What to train a head for. `out`: a file, or a folder for `corrector.safetensors`.

    `model`: the checkpoint, the one in use where None. `adapter`: merged into it. `run`: a training run on it that is
    not exported yet; such a head serves to try, for what it was made for has no files that the engine loads. `taps`:
    layers from 0; a third, two thirds and the whole depth where empty.
    """

    corpus: Path
    out: Path
    plan: CorrectorPlan
    model: Path | None = None
    adapter: Path | None = None
    run: Path | None = None
    taps: tuple[int, ...] = ()
    drafts: DraftOptions = field(default_factory=DraftOptions)
    device: str = "auto"
    dtype: str = "auto"


def make_corrector(request: CorrectorRequest, progress: Progress = lambda *_: None) -> tuple[Path, Corrector]:
    """Train a head and write it. Raises InputError, ModelError or StorageError; nothing half-written is left."""
    path = check_writable(request.out)
    folder = find_model(request.model)
    spec = read_spec(folder, read_tokenizer(folder))
    if spec.regime is not Regime.CAUSAL or not spec.verifies:
        raise InputError(f"A corrector head reads causal verifying passes, and {spec.name} has none.")
    taps = request.taps or default_taps(spec.shape.layers)
    if list(taps) != sorted(set(taps)) or not 0 <= taps[0] <= taps[-1] < spec.shape.layers:
        raise InputError(f"The taps are layers from 0 to {spec.shape.layers - 1} in their order, each once.")
    corpus = load_corpus(request.corpus, hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest())
    train, held_out = (_rows(corpus, name, spec, request.drafts) for name in ("train", "validation"))
    network, digest = _open_network(request, folder, spec)
    corrector = train_corrector(
        Drafts(train, network, spec, taps, request.drafts),
        Drafts(held_out, network, spec, taps, request.drafts),
        request.plan,
        taps,
        digest,
        progress,
    )
    save_corrector(path, corrector)
    return path, corrector


def check_writable(out: Path, name: str = FILE) -> Path:
    """Where the head's file goes, tried before the work begins: `out`, or that name in it. Raises StorageError."""
    path = out if out.suffix == ".safetensors" else out / name
    probe = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StorageError(f"The head cannot be written to {path}: {error.strerror or error}.") from error
    return path


def _rows(corpus: Corpus, name: str, spec: ModelSpec, options: DraftOptions) -> SplitRows:
    rows = corpus.splits.get(name)
    if rows is None or not len(rows.tokens):
        raise InputError(f"The corpus in {corpus.folder} has no {name} rows.", advice="Give it more code.")
    if rows.tokens.shape[1] <= options.block:
        raise InputError(f"Drafts of {options.block} tokens do not fit rows of {rows.tokens.shape[1]}.")
    if int(rows.tokens.max()) >= spec.shape.vocab:
        raise InputError(f"The corpus in {corpus.folder} holds tokens that {spec.name} does not have.")
    return rows


def _open_network(request: CorrectorRequest, folder: Path, spec: ModelSpec) -> tuple[Network, str]:
    """A network that learns nothing, and the digest of its weights."""
    adapters = adapters_over(folder, request.adapter)
    device = choose_device(request.device)
    weights = read_merged(folder, spec.shape, adapters, dtype=torch.float32, device=device)
    digest = digest_of(folder, adapters)
    if request.run is not None:
        run = read_run(request.run)
        weights = _with_run(weights, run)
        with (run.checkpoint / checkpoints.LEARNED).open("rb") as file:
            learned = hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256(f"{digest}\n{learned}".encode()).hexdigest()
    return Network.fixed(spec.shape, weights, dtype=choose_dtype(request.dtype, device)), digest


def _with_run(weights: Mapping[str, Tensor], run: Run) -> dict[str, Tensor]:
    """The weights as a run left them: pairs of matrices added, or whole ones put in the place of the base's."""
    result = dict(weights)
    foreign = InputError(
        f"The run in {run.checkpoint.parent} belongs to another model.", advice="Name it with --model."
    )
    with run.learned() as file:
        for name in file.keys():  # noqa: SIM118 - no dict
            if name.endswith(LORA_B):
                continue
            learned: Tensor = file.get_tensor(name).float()
            target, pair = name, name.endswith(LORA_A)
            if pair:
                stem = name.removesuffix(LORA_A)
                target, learned = f"{stem}.weight", file.get_tensor(stem + LORA_B).float() @ learned
            if target not in result or result[target].shape != learned.shape:
                raise foreign
            learned = learned.to(result[target].device)
            result[target] = result[target] + learned if pair else learned
    return result
