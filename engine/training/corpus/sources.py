"""Where the files of a corpus come from, as documents of packages. Knows wheels, the interpreter and repositories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from remask.engine.training.corpus.archives import read_wheel
from remask.engine.training.corpus.pins import STDLIB, Pin
from remask.engine.training.corpus.repository import read_repository
from remask.engine.training.corpus.stdlib import read_stdlib, stdlib_version


@dataclass(frozen=True, slots=True)
class Source:
    """A package of a corpus: its facts for the manifest, its files, and what may be taken of it."""

    name: str
    version: str
    licence: str
    split: str | None  # None: by a hash of each file's path
    cap_bytes: int
    weight: float
    files: Iterable[tuple[str, bytes]]


def pinned_source(pin: Pin, wheel: Path | None) -> Source:
    """The source of a pin: its wheel, or the interpreter's own library for the pin named so."""
    if pin.name == STDLIB or wheel is None:
        version, files = stdlib_version(), read_stdlib()
    else:
        version, files = pin.version, read_wheel(wheel)
    return Source(pin.name, version, pin.licence, pin.split, int(pin.cap_mb * 1e6), pin.weight, files)


def repository_source(folder: Path) -> Source:
    """The source of a user's own repository, with a share of its files held out for validation."""
    files: Iterator[tuple[str, bytes]] = read_repository(folder)
    return Source(folder.resolve().name, "", "own", None, 2**40, 1.0, files)
