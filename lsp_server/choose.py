"""Which pieces of other files a model should see with a document. Pure, but for the index and the clock that bounds it.

The most useful first: definitions of imported names, what was edited or visited lately, what is similar to the lines
being written, and what was changed since the server started. It stops at the deadline with what it has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from remask.contract.messages import Snippet
from remask.grammars import Grammar
from remask.lsp_server.definitions import imported_names
from remask.lsp_server.index import Index

MAX_DEFINITIONS = 12
MAX_RECENT = 3
MAX_SIMILAR = 2
LEAST_SIMILAR = 0.1
_AROUND = 12  # lines before and after an edit
_CHUNK = 20  # lines that are compared at once
_LOOKED_AT = 4_000  # lines of one document


@dataclass(frozen=True, slots=True)
class Other:
    """Another open document that may be shown: its name, its text, and the row that was worked at last."""

    name: str
    text: str
    row: int


@dataclass(frozen=True, slots=True)
class Here:
    """The document that is being completed."""

    path: Path | None
    text: str
    row: int
    grammar: Grammar | None = None  # of its language


def choose(
    here: Here,
    others: Sequence[Other],
    edits: Sequence[str],
    index: Index,
    characters: int,
    deadline: float,
    root: str = "",
) -> tuple[Snippet, ...]:
    """Snippets of so many characters at most; `others` begin with the one worked at last, `root` is left out of paths.

    `deadline` is a time of `time.monotonic`.
    """
    chosen: dict[str, Snippet] = {}
    for snippet in _candidates(here, others, edits, index, root):
        if time.monotonic() >= deadline:
            break
        size = len(snippet.text) + len(snippet.path)
        if snippet.text.strip() and snippet.text not in chosen and size <= characters:
            chosen[snippet.text] = snippet
            characters -= size
    return tuple(chosen.values())


def _candidates(
    here: Here, others: Sequence[Other], edits: Sequence[str], index: Index, root: str
) -> Iterator[Snippet]:
    yield from _defined(here, index, root)
    for other in others[:MAX_RECENT]:
        yield Snippet(other.name, _lines(other.text, other.row - _AROUND, other.row + _AROUND), "recent")
    yield from _similar(here, others)
    if edits:
        yield Snippet("recent edits", "\n".join(edits), "edits")


def _defined(here: Here, index: Index, root: str) -> Iterator[Snippet]:
    count = 0
    names = imported_names(here.grammar, here.text) if here.grammar else []
    for name in names:
        found = sorted(index.find(name, here.path), key=lambda pair: pair[0].stem not in names)
        shown = next((pair for pair in found if not index.hides(pair[0])), None)
        if shown is not None:
            yield Snippet(shown[0].as_posix().removeprefix(root), shown[1].text, "definition")
            count += 1
        if count >= MAX_DEFINITIONS:
            return


def _similar(here: Here, others: Sequence[Other]) -> Iterator[Snippet]:
    wanted = _line_set(_lines(here.text, here.row - _CHUNK, here.row + _CHUNK).split("\n"))
    found: list[tuple[float, str, str]] = []
    for other in others if wanted else ():
        lines = other.text.split("\n")[:_LOOKED_AT]
        for start in range(0, len(lines), _CHUNK):
            chunk = lines[start : start + _CHUNK]
            score = jaccard(wanted, _line_set(chunk))
            if score >= LEAST_SIMILAR:
                found.append((score, other.name, "\n".join(chunk)))
    for _, name, text in sorted(found, key=lambda one: -one[0])[:MAX_SIMILAR]:
        yield Snippet(name, text, "similar")


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """How much two sets have in common, 0 to 1."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def _line_set(lines: Sequence[str]) -> frozenset[str]:
    return frozenset(stripped for line in lines if len(stripped := line.strip()) > 2)


def _lines(text: str, first: int, last: int) -> str:
    return "\n".join(text.split("\n")[max(0, first) : max(0, last) + 1])
