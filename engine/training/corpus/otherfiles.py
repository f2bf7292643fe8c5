"""Definitions of other files of a package, as the engine shows them before a prompt: `# path`, text, empty line.

Found by name, as an editor would find the definition of what the code around the hole imports or calls.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.holes import Hole

MAX_CHARACTERS = 380  # about 120 tokens
MAX_METHODS = 12
COMMON = 2  # a name with more definitions in a package says little

_TOP = re.compile(r"^(?:async def|def|class) (\w{4,})", re.M)
_CALLED = re.compile(r"\b([A-Za-z_]\w{3,})\s*\(")
_IMPORTED = re.compile(r"^from [\w.]+ import ([^\n(]+)|^from [\w.]+ import \(([^)]*)\)", re.M)
_METHOD = re.compile(r"^    (?:async )?def (?!_)\w+\(.*\).*:$", re.M)
_DOCSTRING = re.compile(r'\s*[rR]?("""|\'\'\')(?:.*?)\1', re.S)
_HEADER_END = re.compile(r":[ \t]*(?:#.*)?\n")


class Definitions:
    """Top-level functions and classes of many files, by package and name."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for document in documents:
            for match in _TOP.finditer(document.text):
                summary = summarised(document.text[match.start() : match.start() + 6_000])
                if summary:
                    self._found[document.package, match[1]].append((document.path, summary))

    def shown_for(self, document: Document, shown: str, rng: np.random.Generator) -> str:
        """A definition from another file that `shown` calls and `document` imports, in the prompt's form, or ""."""
        imported = imported_names(document.text)
        names = sorted(imported & set(_CALLED.findall(shown)))
        for index in rng.permutation(len(names)):
            places = self._found.get((document.package, names[index]), [])
            others = [(path, text) for path, text in places if path != document.path]
            if 1 <= len(others) <= COMMON:
                path, text = others[0]
                return f"# {path}\n{text.strip()}\n\n"
        return ""


class SometimesOtherFiles:
    """The hook of `make_examples` that shows a definition in a share of the examples where there is one."""

    def __init__(self, definitions: Definitions, share: float, rng: np.random.Generator) -> None:
        self._definitions, self._share, self._rng = definitions, share, rng

    def __call__(self, document: Document, hole: Hole, shown: str) -> str:
        """The text in front of an example, often none."""
        if self._rng.random() >= self._share:
            return ""
        return self._definitions.shown_for(document, shown, self._rng)


def imported_names(text: str) -> set[str]:
    """The names that `from ... import` brings into a Python file."""
    lists = ",".join(a or b for a, b in _IMPORTED.findall(text))
    return {part.split(" as ")[0].split("#")[0].strip() for part in lists.split(",")}


def summarised(text: str) -> str:
    """A definition that starts `text`, cut to its header and docstring, or a class's header and public methods."""
    end = _HEADER_END.search(text)
    if end is None:
        return ""
    header = text[: end.end()]
    if header.startswith("class "):
        stop = re.search(r"^\S", text[end.end() :], re.M)
        inner = text[end.end() : end.end() + stop.start()] if stop else text[end.end() :]
        methods = [m[0] for m in _METHOD.finditer(inner)][:MAX_METHODS]
        kept = header + "\n".join(methods)
        while len(kept) > MAX_CHARACTERS and methods:
            methods.pop()
            kept = header + "\n".join(methods)
    else:
        docstring = _DOCSTRING.match(text, end.end())
        kept = text[: docstring.end()] if docstring and docstring.end() <= MAX_CHARACTERS else header
    return kept if len(kept) <= MAX_CHARACTERS else ""
