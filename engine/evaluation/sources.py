"""Source files to measure with: those that a corpus sets apart, or those of any folder that a user names.

Which files are read depends on the seed and their own places alone. Knows files and grammars; cuts no hole.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from remask.contract.errors import InputError
from remask.engine.evaluation.tasks import drawn, find, read_lines
from remask.engine.training.corpus.documents import Document
from remask.grammars import grammar_for_path, grammars

TEXTS = "validation.jsonl"
FILES = 200  # of a language that are read of a folder
LEAST, LONGEST = 200, 20_000  # code points of a file in a folder
LONGEST_LINE = 400  # code points; longer ones are made by machines


def read_documents(folder: Path, languages: Collection[str] = (), seed: int = 0) -> list[Document]:
    """The texts in `folder` of the named languages, or of all with a grammar.

    A folder with validation.jsonl is a corpus and gives its held-out files; any other its source files, FILES of a
    language at most, drawn by `seed`. Raises InputError where there are none, and for an unknown language.
    """
    wanted = _known(languages)
    if not folder.is_dir() or any((folder / name).is_file() for name in (TEXTS, f"{TEXTS}.gz")):
        path = find(folder, (TEXTS,), "The files are those that 'remask train corpus' sets apart.")
        read = read_lines(path, ("package", "path", "text"), "held-out file")
        documents = (Document(package, place, text) for package, place, text in read)
        return [one for one in documents if not wanted or language(one.path) in wanted]
    found = list(_of_folder(folder, wanted, seed))
    if not found:
        named = f" in {' or '.join(sorted(wanted))}" if wanted else ""
        raise InputError(
            f"There is no {TEXTS} in {folder}, and no source file{named}.",
            advice="Name a folder made by 'remask train corpus', or one with source files.",
        )
    return found


def language(path: str) -> str:
    """The name of the grammar for a path; empty where there is none."""
    grammar = grammar_for_path(path)
    return "" if grammar is None else grammar.name


def _known(languages: Collection[str]) -> frozenset[str]:
    known = {grammar.name for grammar in grammars()}
    if unknown := sorted(set(languages) - known):
        raise InputError(f"There is no language {unknown[0]!r}; there are {', '.join(sorted(known))}.")
    return frozenset(languages)


def _of_folder(folder: Path, wanted: frozenset[str], seed: int) -> Iterator[Document]:
    by_language: dict[str, list[str]] = {}
    for path in _paths(folder):
        if (name := language(path)) and (not wanted or name in wanted):
            by_language.setdefault(name, []).append(path)
    for paths in by_language.values():
        read = 0
        for path in sorted(paths, key=lambda place: drawn(seed, place)):
            text = _text(folder / path)
            if text is not None:
                yield Document(folder.name, f"{folder.name}/{path}", text)
                read += 1
            if read == FILES:
                break


def _paths(folder: Path) -> Iterator[str]:
    """Files below `folder` with forward slashes; hidden ones and links are left out."""
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") and not path.is_symlink():
                yield path.relative_to(folder).as_posix()


def _text(path: Path) -> str | None:
    """A text that people may have written; None for what cannot be read, is too short or long, or made by a machine."""
    try:
        if path.stat().st_size > 4 * LONGEST:
            return None
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not LEAST <= len(text) <= LONGEST or "\r" in text or "\0" in text:
        return None
    return None if any(len(line) > LONGEST_LINE for line in text.split("\n")) else text
