"""Places in a Python package where a name is used that another of its files defines. Knows texts; knows no model."""

from __future__ import annotations

import ast
import posixpath
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remask.contract.messages import Snippet
from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.otherfiles import summarised

MAX_HOPS = 3  # modules that only pass a name on
MAX_DEFINITION = 6_000  # characters looked at
MAX_LINES, MAX_SHOWN = 10, 500  # lines and characters of a definition that cannot be summed up
LEAST, LONGEST = 3, 160  # characters of a middle

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Place:
    """The rest of a line behind a name, `text[start:end]`, and the name's definition in another file."""

    document: Document
    start: int
    end: int
    definition: Snippet


class _Module:
    """A file with what it defines and what it imports from where."""

    def __init__(self, document: Document) -> None:
        self.document = document
        with warnings.catch_warnings(action="ignore"):
            self.tree = ast.parse(document.text)
        self.lines = document.text.split("\n")
        self.defined = {n.name: n for n in self.tree.body if isinstance(n, Definition)}
        self.imported = {
            alias.asname or alias.name: (node.level, node.module or "", alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def offset(self, row: int, column: int) -> int:
        """A place as ast counts it, rows from 1 and columns in bytes, as an offset in code points."""
        before = sum(len(line) + 1 for line in self.lines[: row - 1])
        return before + len(self.lines[row - 1].encode()[:column].decode("utf-8", "replace"))


def cross_file_places(package: Sequence[Document]) -> Iterator[Place]:
    """One place for every line that calls or looks into something that another file of the package defines.

    The files must parse. A name is followed through `from ... import`, also where a module only passes it on.
    """
    modules = {document.path: _Module(document) for document in package}
    for module in modules.values():
        found = {name: _definition(modules, module, name, MAX_HOPS) for name in module.imported}
        own = module.document.path
        shown = {name: snippet for name, snippet in found.items() if snippet is not None and snippet.path != own}
        yield from _uses(module, shown)


def _uses(module: _Module, shown: dict[str, Snippet]) -> Iterator[Place]:
    text = module.document.text
    rows: set[int] = set()
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Name) or node.id not in shown or node.end_lineno in rows:
            continue
        start = module.offset(node.end_lineno or 0, node.end_col_offset or 0)
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if re.match(r"[(.]", text[start:end]) and len(text[start:end].strip()) >= LEAST and end - start <= LONGEST:
            rows.add(node.lineno)
            yield Place(module.document, start, end, shown[node.id])


def _definition(modules: dict[str, _Module], module: _Module, name: str, hops: int) -> Snippet | None:
    """The definition that `name` stands for in `module`, if another file of the package holds it."""
    level, source, original = module.imported[name]
    target = _target(modules, module.document.path, level, source)
    if target is None or target is module or hops == 0:
        return None
    node = target.defined.get(original)
    if node is None:
        return _definition(modules, target, original, hops - 1) if original in target.imported else None
    return Snippet(target.document.path, _shown(target, node))


def _shown(module: _Module, node: Definition) -> str:
    """A definition in the form that training shows, or its first lines, as an editor would, where that says nothing."""
    start = module.offset(node.lineno, node.col_offset)
    summary = summarised(module.document.text[start : start + MAX_DEFINITION])
    if summary and ("\n" in summary.strip() or not isinstance(node, ast.ClassDef)):
        return summary
    return "\n".join(module.lines[node.lineno - 1 : node.end_lineno][:MAX_LINES])[:MAX_SHOWN]


def _target(modules: dict[str, _Module], path: str, level: int, source: str) -> _Module | None:
    """The file that an import names: relative to `path`, or by its full name from any folder above it."""
    tail = source.replace(".", "/")
    if level:
        base = path
        for _ in range(level):
            base = posixpath.dirname(base)
        bases = [base]
    else:
        bases = [""]
        folder = posixpath.dirname(path)
        while folder:
            bases.append(folder)
            folder = posixpath.dirname(folder)
    for base in bases:
        stem = posixpath.join(base, tail) if tail else base
        for candidate in (f"{stem}.py", posixpath.join(stem, "__init__.py")):
            if candidate in modules:
                return modules[candidate]
    return None
