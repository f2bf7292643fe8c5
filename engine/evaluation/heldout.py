"""Tasks made from whole files that were never trained on: ends of lines, statements, bodies, cursors inside a word.

Every hole depends on the seed and its own place alone. Knows texts and grammars; knows no model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from remask.contract.errors import InputError
from remask.contract.messages import Snippet
from remask.engine.evaluation.crossfile import cross_file_places
from remask.engine.evaluation.metrics import parses
from remask.engine.evaluation.sources import read_documents
from remask.engine.evaluation.tasks import Split, Task, choose, drawn
from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.outline import outline
from remask.grammars import Grammar, grammar_for_path
from remask.grammars.source import encode

if TYPE_CHECKING:
    from tree_sitter import Node

LEAST_LINE, LONGEST_LINE = 3, 160  # characters of a middle that is the rest of a line
LEAST_BLOCK, LONGEST_BLOCK = 8, 420  # characters of a statement or body; 420 are about 120 tokens
LEAST_WORD = 4  # characters of a name that the cursor can stand in


@dataclass(frozen=True, slots=True)
class Hole:
    """The middle `text[start:end]` of a file, in code points, and what may be read of other files."""

    name: str
    document: Document
    grammar: Grammar
    start: int
    end: int
    context: tuple[Snippet, ...] = ()

    def task(self) -> Task:
        """The hole with the texts around it."""
        text = self.document.text
        return Task(
            name=self.name,
            prefix=text[: self.start],
            suffix=text[self.end :],
            truth=text[self.start : self.end],
            language=self.grammar.language_ids[0],
            context=self.context,
        )


def make_tasks(
    folder: Path,
    split: Split,
    limit: int | None,
    seed: int,
    *,
    context: bool = True,
    languages: Collection[str] = (),
) -> list[Task]:
    """`limit` tasks of a held-out split, or its own number of them, from the texts in `folder` (see `read_documents`).

    Of several languages as many each, as far as they have enough. Without `context` nothing is shown of other files.
    Raises InputError where the texts are missing or damaged, or no hole of the kind can be made.
    """
    documents = read_documents(folder, languages, seed)
    holes = _in_turn(_holes(documents, split.name, seed), limit or split.limit, seed)
    if not holes:
        raise InputError(f"The files in {folder} have no place for the split {split.name!r}.")
    tasks = [hole.task() for hole in holes]
    if context:
        return tasks
    return [Task(name=t.name, prefix=t.prefix, suffix=t.suffix, truth=t.truth, language=t.language) for t in tasks]


def _in_turn(holes: Iterable[Hole], limit: int | None, seed: int) -> list[Hole]:
    """`limit` holes, or all, a hole of every language in turn; within a language as `choose` orders them."""
    by_language: dict[str, list[Hole]] = {}
    for hole in holes:
        by_language.setdefault(hole.grammar.name, []).append(hole)
    rows = zip_longest(*(choose(by_language[name], None, seed) for name in sorted(by_language)))
    return list(islice((hole for row in rows for hole in row if hole is not None), limit))


def _holes(documents: Sequence[Document], kind: str, seed: int) -> Iterator[Hole]:
    sound = []
    for document in documents:
        grammar = _grammar(document)
        if grammar is not None and parses(grammar.language_ids[0], document.text):
            sound.append((document, grammar))
    if kind == "cross-file":
        yield from _cross_file(sound)
        return
    for document, grammar in sound:
        for start, end in PLACES[kind](grammar, document, seed):
            yield Hole(_name(document, start), document, grammar, start, end)


def _cross_file(sound: Sequence[tuple[Document, Grammar]]) -> Iterator[Hole]:
    grammars = dict(sound)
    python = [document for document, grammar in sound if grammar.name == "python"]
    for _, package in groupby(sorted(python, key=lambda d: (d.package, d.path)), key=lambda d: d.package):
        for place in cross_file_places(list(package)):
            name = _name(place.document, place.start)
            yield Hole(name, place.document, grammars[place.document], place.start, place.end, (place.definition,))


def _grammar(document: Document) -> Grammar | None:
    return grammar_for_path(document.path)


def _name(document: Document, at: int) -> str:
    row = document.text.count("\n", 0, at)
    column = at - document.text.rfind("\n", 0, at) - 1
    path = document.path.removeprefix(f"{document.package}/")
    return f"{document.package}/{path}:{row + 1}:{column + 1}"


Places = Iterator[tuple[int, int]]


def _line_ends(grammar: Grammar, document: Document, seed: int) -> Places:
    """In every line with a name: from the start of one of its tokens, not the first, to the end of the line."""
    for number, line in enumerate(_lines(grammar, document.text)):
        starts = [start for start, _, _ in line[1:]] if any("identifier" in kind for _, _, kind in line) else []
        yield from _rest_of_line(document, starts, f"{seed}:{document.path}:{number}")


def _inside_tokens(grammar: Grammar, document: Document, seed: int) -> Places:
    """In every line of code: from inside one of its names to the end of the line."""
    for number, line in enumerate(_lines(grammar, document.text)):
        inside = [
            start + 1 + drawn(seed, f"{document.path}:{start}") % (end - start - 1)
            for start, end, kind in line
            if kind.endswith("identifier") and end - start >= LEAST_WORD
        ]
        yield from _rest_of_line(document, inside, f"{seed}:{document.path}:{number}")


def _rest_of_line(document: Document, starts: Sequence[int], key: str) -> Places:
    """One of `starts` that leaves enough of its line, and the end of the line."""
    text = document.text
    places = [(start, end if (end := text.find("\n", start)) >= 0 else len(text)) for start in starts]
    fit = [(s, e) for s, e in places if len(text[s:e].strip()) >= LEAST_LINE and e - s <= LONGEST_LINE]
    if fit:
        yield fit[drawn(0, key) % len(fit)]


def _statements(grammar: Grammar, document: Document, seed: int) -> Places:
    """Whole statements of functions, each from behind its indentation to its end; no functions or classes."""
    shape = outline(grammar, document.text)
    inner = {f.start for f in shape.functions}
    for start, end in shape.statements:
        line = document.text.rfind("\n", 0, start) + 1
        inside = any(f.code <= start and end <= f.close for f in shape.functions)
        defines = any(line <= at < end for at in inner)
        if inside and not defines and not document.text[line:start].strip() and _fits(document.text, start, end):
            yield start, end


def _bodies(grammar: Grammar, document: Document, seed: int) -> Places:
    """Whole bodies of functions, behind the docstring where there is one; outer functions only."""
    last = -1
    for function in outline(grammar, document.text).functions:
        if function.start >= last and _fits(document.text, function.code, function.close):
            yield function.code, function.close
        last = max(last, function.close)


def _fits(text: str, start: int, end: int) -> bool:
    return len(text[start:end].strip()) >= LEAST_BLOCK and end - start <= LONGEST_BLOCK


PLACES: dict[str, Callable[[Grammar, Document, int], Places]] = {
    "line-end": _line_ends,
    "statement": _statements,
    "body": _bodies,
    "inside-token": _inside_tokens,
}


def _lines(grammar: Grammar, text: str) -> Iterable[list[tuple[int, int, str]]]:
    """The tokens of every line of code as (start, end, kind), code points; comments and strings over lines left out."""
    source = encode(text)
    rows: dict[int, list[tuple[int, int, str]]] = {}
    spoiled: set[int] = set()
    offsets = _line_starts(text)
    for leaf in _leaves(grammar.parse(source).root_node):
        first, last = leaf.start_point.row, leaf.end_point.row
        if first != last or "comment" in leaf.type:
            spoiled.update(range(first, last + 1))
        elif leaf.end_byte > leaf.start_byte:
            begin = source.rfind(b"\n", 0, leaf.start_byte) + 1
            start = offsets[first] + len(source[begin : leaf.start_byte].decode("utf-8", "replace"))
            length = len(source[leaf.start_byte : leaf.end_byte].decode("utf-8", "replace"))
            rows.setdefault(first, []).append((start, start + length, leaf.type))
    return [line for row, line in sorted(rows.items()) if row not in spoiled]


def _leaves(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.child_count == 0:
            yield node
        else:
            stack.extend(reversed(node.children))


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts
