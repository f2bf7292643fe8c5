"""From sources to the documents of a corpus: filtered, free of evaluation lines, without copies, within caps."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from remask.engine.training.corpus.contamination import EvaluationLines
from remask.engine.training.corpus.documents import TRAIN, VALIDATION, Document, sampling_weight
from remask.engine.training.corpus.duplicates import Duplicates
from remask.engine.training.corpus.filters import decode, parses, refusal
from remask.engine.training.corpus.sources import Source
from remask.grammars.language import language_of

HELD_OUT = 20  # of a repository, every so many-th file validates


class Reporter(Protocol):
    """Hears how far the work is."""

    def stage(self, name: str, total: int) -> None:
        """A new stage of `total` steps begins."""

    def step(self, amount: int = 1) -> None:
        """So many steps of the stage are done."""


@dataclass(slots=True)
class Gathered:
    """The kept documents and an account of the others: counts by reason, names of contaminated files."""

    documents: list[Document] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    contaminated: list[dict[str, str]] = field(default_factory=list)
    packages: list[dict[str, Any]] = field(default_factory=list)


def gather(sources: Sequence[Source], evaluation: EvaluationLines, seed: int, reporter: Reporter) -> Gathered:
    """Read all sources. Validation sources come first, so that a copy of theirs is dropped from training."""
    gathered, seen = Gathered(), Duplicates(seed)
    reporter.stage("filter", len(sources))
    for source in sorted(sources, key=lambda s: s.split != VALIDATION):
        before = Counter(gathered.dropped)
        kept = _within_cap(source, list(_candidates(source, evaluation, seen, gathered)), seed, gathered)
        gathered.documents += kept
        gathered.packages.append(
            {
                "name": source.name,
                "version": source.version,
                "licence": source.licence,
                "split": source.split or "by file",
                "files": len(kept),
                "characters": sum(len(d.text) for d in kept),
                "dropped": dict(sorted((gathered.dropped - before).items())),
            }
        )
        reporter.step()
    return gathered


def in_sampling_order(documents: Sequence[Document], seed: int) -> list[Document]:
    """All documents in a random order in which weight w goes first w times as gladly.

    Sorted by u^(1/w): P. S. Efraimidis and P. G. Spirakis, "Weighted random sampling with a reservoir" (2006).
    """
    weights = np.array([sampling_weight(d) for d in documents])
    keys = np.random.default_rng(seed).random(len(documents)) ** (1 / np.maximum(weights, 1e-6))
    return [documents[i] for i in np.argsort(-keys, kind="stable")]


def _candidates(
    source: Source, evaluation: EvaluationLines, seen: Duplicates, gathered: Gathered
) -> Iterator[Document]:
    for path, data in source.files:
        text = decode(data)
        reason = "encoding" if text is None else refusal(text)
        if text is None or reason is not None:
            gathered.dropped[reason or "encoding"] += 1
            continue
        hit = evaluation.hit(text)
        if hit is not None:
            gathered.dropped["evaluation line"] += 1
            gathered.contaminated.append({"package": source.name, "path": path, "line": hit})
            continue
        copy = seen.kind_of(text)
        if copy is not None:
            gathered.dropped[copy] += 1
            continue
        split = source.split or (TRAIN if zlib.crc32(path.encode()) % HELD_OUT else VALIDATION)
        yield Document(source.name, path, text, split, source.weight)


def _within_cap(source: Source, documents: list[Document], seed: int, gathered: Gathered) -> list[Document]:
    """The files that parse, up to the cap of the package; which ones, a weighted draw decides."""
    kept, taken = [], 0
    for document in in_sampling_order(documents, seed):
        if taken + len(document.text) > source.cap_bytes:
            gathered.dropped["over the cap"] += 1
        elif not parses(document.text, language_of(document.path) or ""):
            gathered.dropped["does not parse"] += 1
        else:
            taken += len(document.text)
            kept.append(document)
    return kept
