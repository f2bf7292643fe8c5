"""Builds a corpus from beginning to end: sources, documents, examples, rows, files."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from remask.contract.errors import InputError
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.choice import find_model
from remask.engine.models.read_spec import read_spec
from remask.engine.models.spec import Layout
from remask.engine.training.corpus.contamination import read_evaluation_lines
from remask.engine.training.corpus.documents import SPLITS, VALIDATION, Document
from remask.engine.training.corpus.download import fetch, wheel_folder
from remask.engine.training.corpus.examples import (
    CHARACTERS_PER_TOKEN,
    MIDDLE,
    Encoder,
    Example,
    ExampleOptions,
    Marks,
    make_examples,
)
from remask.engine.training.corpus.gather import Gathered, Reporter, gather, in_sampling_order
from remask.engine.training.corpus.otherfiles import Definitions, SometimesOtherFiles
from remask.engine.training.corpus.outline import outline
from remask.engine.training.corpus.packing import pack, shuffled
from remask.engine.training.corpus.pins import STDLIB, read_pins
from remask.engine.training.corpus.sources import Source, pinned_source, repository_source
from remask.engine.training.corpus.store import FORMAT, check_writable, write_corpus
from remask.grammars.language import grammar_for_path


@dataclass(frozen=True, slots=True)
class CorpusRequest:
    """What to build. `tokens` bounds the tokens of training examples (None: all); `repo` replaces the pins.

    No example may be longer than a row: `options.longest` is at most `row_tokens`.
    """

    out: Path
    pins: Path | None = None
    repo: Path | None = None
    model: Path | None = None
    row_tokens: int = 512
    tokens: int | None = None
    seed: int = 0
    eval_data: tuple[Path, ...] = ()
    options: ExampleOptions = field(default_factory=ExampleOptions)
    other_files: float = (
        0.7  # of the examples are looked at for a definition in another file; a seventh of them has one
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """The model's side: its tokenizer as a function, its marks, and the hash that names it."""

    encode: Encoder
    marks: Marks
    sha256: str


def build_corpus(request: CorpusRequest, reporter: Reporter) -> dict[str, Any]:
    """Build the corpus and return its manifest. Raises RemaskError; nothing half-written is left."""
    check_writable(request.out)
    reader = _reader(request.model)
    evaluation = read_evaluation_lines(request.eval_data)
    gathered = gather(_sources(request, reporter), evaluation, request.seed, reporter)
    made = {split: _examples(request, reader, gathered.documents, split, reporter) for split in SPLITS}
    if not made["train"]:
        raise InputError("Nothing is left to train on: every file was left out.", advice=_account(gathered))
    splits = {split: (examples, _rows(request, examples)) for split, examples in made.items()}
    manifest = {
        "format": FORMAT,
        "tokenizer_sha256": reader.sha256,
        "marks": asdict(reader.marks),
        "row_tokens": request.row_tokens,
        "seed": request.seed,
        "splits": {split: _facts(*parts) for split, parts in splits.items()},
        "packages": gathered.packages,
        "dropped": dict(sorted(gathered.dropped.items())),
        "evaluation_lines": len(evaluation.lines),
        "contaminated": gathered.contaminated,
    }
    texts = [d for d in gathered.documents if d.split == VALIDATION]
    reporter.stage("write", 1)
    write_corpus(request.out, manifest, splits, texts)
    reporter.step()
    return manifest


def _reader(model: Path | None) -> _Reader:
    folder = find_model(model)
    tokenizer = read_tokenizer(folder)
    spec = read_spec(folder, tokenizer)
    if spec.layout is not Layout.SUFFIX_PREFIX or min(spec.prefix_id, spec.suffix_id) < 0:
        raise InputError(
            f"The model {spec.name} does not read its prompts as suffix and prefix.",
            advice="Name a model of Remask's own layout (--model).",
        )

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [e.ids for e in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    marks = Marks(spec.prefix_id, spec.suffix_id, spec.end_ids[0], spec.mask_id)
    return _Reader(encode, marks, hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest())


def _sources(request: CorpusRequest, reporter: Reporter) -> list[Source]:
    if request.repo is not None:
        return [repository_source(request.repo)]
    pins, folder = read_pins(request.pins), wheel_folder()
    reporter.stage("download", len(pins))
    sources = []
    for pin in pins:
        sources.append(pinned_source(pin, None if pin.name == STDLIB else fetch(pin, folder)))
        reporter.step()
    return sources


def _examples(
    request: CorpusRequest, reader: _Reader, documents: Sequence[Document], split: str, reporter: Reporter
) -> list[Example]:
    """Examples of a split, up to the bound for training ones, in the order of the sampled files."""
    chosen = [d for d in documents if d.split == split]
    bound = request.tokens if request.tokens is not None and split != VALIDATION else None
    definitions = Definitions(chosen)
    estimate = int(sum(len(d.text) for d in chosen) / CHARACTERS_PER_TOKEN)
    reporter.stage(f"examples: {split}", min(bound or estimate, estimate))
    examples: list[Example] = []
    taken = 0
    for document in in_sampling_order(chosen, request.seed):
        made = _of_document(request, reader, definitions, document)
        examples += made
        size = sum(len(e.tokens) for e in made)
        taken += size
        reporter.step(size)
        if bound is not None and taken >= bound:
            break
    return examples


def _of_document(
    request: CorpusRequest, reader: _Reader, definitions: Definitions, document: Document
) -> list[Example]:
    grammar = grammar_for_path(document.path)
    assert grammar is not None  # files of other languages were left out
    rng = np.random.default_rng([request.seed, zlib.crc32(f"{document.package}/{document.path}".encode())])
    others = SometimesOtherFiles(definitions, request.other_files, rng)
    shape = outline(grammar, document.text)
    return make_examples(document, shape, reader.encode, reader.marks, request.options, rng, others)


def _rows(request: CorpusRequest, examples: Sequence[Example]) -> list[list[int]]:
    """Rows in a random order, of examples in a random order."""
    order = shuffled(len(examples), request.seed).tolist()
    rows = pack([len(examples[i].tokens) for i in order], request.row_tokens)
    return [[order[i] for i in rows[row]] for row in shuffled(len(rows), request.seed).tolist()]


def _facts(examples: Sequence[Example], rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    kinds = Counter(e.kind for e in examples)
    middles = [int((e.roles == MIDDLE).sum()) for e in examples]
    return {
        "rows": len(rows),
        "examples": len(examples),
        "tokens": sum(len(e.tokens) for e in examples),
        "kinds": dict(sorted(kinds.items())),
        "in_short_documented": sum(e.documented for e in examples),
        "whole_middles": sum(e.whole for e in examples),
        "mean_middle_tokens": round(sum(middles) / max(1, len(middles)), 1),
    }


def _account(gathered: Gathered) -> str:
    counts = ", ".join(f"{reason}: {count}" for reason, count in sorted(gathered.dropped.items()))
    return f"({counts or 'there was none'})"
