"""Keeps evaluation sets out of the corpus: no long line of theirs may stand in a kept file. Knows texts only."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from remask.contract.errors import InputError

MIN_LINE = 45  # characters without the indentation
_WORD = re.compile(r"\w{4,}")


class EvaluationLines:
    """The long lines of evaluation sets; `hit` finds one inside a text, wherever in a line it stands."""

    def __init__(self, texts: Iterable[str]) -> None:
        lines = {line.strip() for text in texts for line in text.splitlines()}
        self.lines = sorted(line for line in lines if len(line) >= MIN_LINE)
        self._by_word: dict[str, list[tuple[frozenset[str], str]]] = defaultdict(list)
        self._wordless: list[str] = []
        for line in self.lines:
            # The outer words may be parts of longer ones in a file: only inner words are whole there too.
            words = _WORD.findall(line)[1:-1]
            if words:
                self._by_word[max(words, key=len)].append((frozenset(words), line))
            else:
                self._wordless.append(line)

    def hit(self, text: str) -> str | None:
        """The first evaluation line found in `text`, or None."""
        words = set(_WORD.findall(text))
        for key in self._by_word.keys() & words:
            for needed, line in self._by_word[key]:
                if needed <= words and line in text:
                    return line
        return next((line for line in self._wordless if line in text), None)


def read_evaluation_lines(folders: Iterable[Path]) -> EvaluationLines:
    """The lines of every .json, .jsonl and .jsonl.gz file below the folders. Raises InputError."""
    return EvaluationLines(text for folder in folders for path in _files(folder) for text in _strings_of(path))


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder} with evaluation data.")
    found = [p for p in sorted(folder.rglob("*")) if p.name.endswith((".json", ".jsonl", ".jsonl.gz"))]
    if not found:
        raise InputError(f"The folder {folder} holds no evaluation data (.json, .jsonl or .jsonl.gz).")
    return found


def _strings_of(path: Path) -> Iterator[str]:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        values = [json.loads(text)] if path.suffix == ".json" else [json.loads(x) for x in text.splitlines() if x]
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise InputError(f"The evaluation data {path} cannot be read: {error}.") from None
    yield from _strings(values)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
