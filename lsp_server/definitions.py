"""The definitions in a file, as short texts that say what they are and how they are called. Knows trees, no language.

A definition is a named node of the outer levels of a tree whose kind says so; of a function its signature and the
beginning of its documentation are kept, of anything else its first lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remask.grammars import Grammar
from remask.grammars.bounded import parse_bounded
from remask.grammars.names import name_of
from remask.grammars.source import encode

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_LINES = 10
MAX_CHARACTERS = 500
_DEPTH = 5
_KIND = re.compile(
    r"(variable|function|method|class|struct|interface|enum|trait|type|record|module|union|const|impl|namespace)"
)
_SORT = re.compile(r"_(definition|declaration|item|specifier|spec|declarator|alias)$")
_INSIDE = re.compile(
    r"body|_list$|declaration|definition|item|specifier|export|decorated|impl|template|linkage|^block$"
)
_IMPORT = re.compile(r"^[ \t]*+(?:from\b|import\b|use\b|using\b|#[ \t]*include\b|export\b.*\bfrom\b|.*\brequire\()")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"(?<!\w)([A-Za-z_]\w*+)[ \t]*+!?\(")  # no way back: a word may be 100 KB of hex digits


@dataclass(frozen=True, slots=True)
class Definition:
    """A name and the text that shows what it is."""

    name: str
    text: str


def definitions(grammar: Grammar, text: str) -> Iterator[Definition]:
    """The definitions of a file, in its order. Raises GrammarError."""
    source = encode(text)
    yield from _walk(parse_bounded(grammar, source).root_node, source, 0)


def imported_names(text: str) -> list[str]:
    """Names that a file imports, in its order: the words of the lines that import."""
    found: dict[str, None] = {}
    for line in text[:20_000].split("\n"):
        if _IMPORT.match(line):
            found.update(dict.fromkeys(_WORD.findall(line)))
    return list(found)


def called_names(text: str) -> frozenset[str]:
    """Names that are followed by an opening bracket somewhere in the text."""
    return frozenset(_CALLED.findall(text))


def _walk(node: Node, source: bytes, depth: int) -> Iterator[Definition]:
    for child in node.named_children:
        if _SORT.search(child.type) and _KIND.search(child.type) and (name := name_of(child, source)):
            yield Definition(name, _shown(child, source))
        if depth < _DEPTH and _INSIDE.search(child.type):
            yield from _walk(child, source, depth + 1)


def _shown(node: Node, source: bytes) -> str:
    body = node.child_by_field_name("body")
    start = source.rfind(b"\n", 0, node.start_byte) + 1
    start = start if not source[start : node.start_byte].strip() else node.start_byte
    end = node.end_byte
    if body is not None and _is_code(node):
        first = body.named_children[0] if body.named_child_count else None
        documented = first is not None and "string" in (first.type, *(c.type for c in first.named_children[:1]))
        end = first.end_byte if first is not None and documented else body.start_byte
    lines = source[start:end].decode("utf-8", "replace").rstrip().rstrip("{").rstrip().split("\n")
    return "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]


def _is_code(node: Node) -> bool:
    return "function" in node.type or "method" in node.type
