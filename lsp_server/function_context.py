"""What of other files goes with a function that is to be filled: who calls it, and what its signature names.

Knows the index and the files that it found, no document. It reads files: call it off the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from remask.contract.messages import Snippet
from remask.lsp_server.folders import Folders
from remask.lsp_server.index import Index

MAX_CALLERS = 3
MAX_TYPES = 4
_BEFORE, _AFTER = 4, 3  # lines around a call
_TYPE = re.compile(r"\b[A-Z]\w+")


def function_snippets(name: str, signature: str, beside: Path | None, index: Index, folders: Folders) -> list[Snippet]:
    """Snippets for the function `name` of the file `beside`, the most useful first."""
    return [*_callers(name, beside, index, folders), *_types(name, signature, beside, index, folders)]


def _callers(name: str, beside: Path | None, index: Index, folders: Folders) -> Iterator[Snippet]:
    for path in index.callers(name, beside)[:MAX_CALLERS] if name else ():
        if index.hides(path):
            continue
        try:
            lines = path.read_text("utf-8", "replace").split("\n")
        except OSError:
            continue
        row = next((row for row, line in enumerate(lines) if f"{name}(" in line), None)
        if row is not None:
            text = "\n".join(lines[max(0, row - _BEFORE) : row + _AFTER])
            yield Snippet(folders.name_of(path), text, "definition")


def _types(name: str, signature: str, beside: Path | None, index: Index, folders: Folders) -> Iterator[Snippet]:
    """The nearest definitions of what a signature names with a capital, as most languages write types."""
    words = (word for word in dict.fromkeys(_TYPE.findall(signature)) if word != name)
    shown = (next((pair for pair in index.find(word, beside) if not index.hides(pair[0])), None) for word in words)
    for path, definition in islice((pair for pair in shown if pair is not None), MAX_TYPES):
        yield Snippet(folders.name_of(path), definition.text, "definition")
