"""The definitions in a file, as short texts that say what they are and how they are called. Knows trees, no language.

What defines a name, and how a file says what it wants of others, stands in the table `definitions` of its grammar. Of
a function the signature and the beginning of its documentation are kept, of anything else its first lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from remask.grammars import Grammar
from remask.grammars.bounded import parse_bounded
from remask.grammars.functions import docstring_of
from remask.grammars.names import name_of
from remask.grammars.source import encode

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_LINES = 10
MAX_CHARACTERS = 500
MAX_IMPORT_LINES = 50  # of one list of names in brackets
_IMPORTS_WITHIN = 20_000  # characters
_DEPTH = 5
_WORD = re.compile(r"[^\W\d]\w*")
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class Definition:
    """A name and the text that shows what it is."""

    name: str
    text: str


def definitions(grammar: Grammar, text: str) -> Iterator[Definition]:
    """The definitions of a file, in its order. Raises GrammarError."""
    source = encode(text)
    yield from _walk(grammar, parse_bounded(grammar, source).root_node, source, 0)


def imported_names(grammar: Grammar, text: str) -> list[str]:
    """Names that a file imports, in its order: the words of the lines that import, and of the brackets they open."""
    found: dict[str, None] = {}
    begins = _import(grammar)
    lines = iter(text[:_IMPORTS_WITHIN].split("\n"))
    for line in lines:
        if begins.match(line):
            found.update(dict.fromkeys(_WORD.findall(line)))
            if (depth := _depth(line)) > 0:
                found.update(dict.fromkeys(_words_until_closed(lines, depth)))
    return list(found)


def called_names(grammar: Grammar, text: str) -> frozenset[str]:
    """Names that are followed by an opening bracket somewhere in the text."""
    return frozenset(_call(grammar).findall(text))


def _words_until_closed(lines: Iterator[str], depth: int) -> Iterator[str]:
    for line in islice(lines, MAX_IMPORT_LINES):
        yield from _WORD.findall(line)
        depth += _depth(line)
        if depth <= 0:
            return


def _depth(line: str) -> int:
    """How many brackets a line opens and does not close."""
    return sum(_BRACKETS.get(character, 0) for character in line)


@lru_cache(maxsize=32)
def _import(grammar: Grammar) -> re.Pattern[str]:
    return re.compile(rf"[ \t]*+(?:{grammar.definitions.imports or '(?!)'})")


@lru_cache(maxsize=32)
def _call(grammar: Grammar) -> re.Pattern[str]:
    mark = re.escape(grammar.definitions.call_mark)
    # No way back: a word may be 100 KB of hex digits.
    return re.compile(rf"(?<!\w)([^\W\d]\w*+)[ \t]*+(?:{mark})?\(")


def _walk(grammar: Grammar, node: Node, source: bytes, depth: int) -> Iterator[Definition]:
    rules = grammar.definitions
    for child in node.named_children:
        if _defines(rules.named, child) and (name := name_of(child, source)):
            yield Definition(name, _shown(grammar, child, source))
        if depth < _DEPTH and child.type in rules.within:
            yield from _walk(grammar, child, source, depth + 1)


def _defines(named: tuple[str, ...], node: Node) -> bool:
    if node.type in named:
        return True
    fields = (entry.partition(".")[2] for entry in named if entry.startswith(f"{node.type}."))
    return any(node.child_by_field_name(field) is not None for field in fields)


def _shown(grammar: Grammar, node: Node, source: bytes) -> str:
    body = node.child_by_field_name("body")
    start = source.rfind(b"\n", 0, node.start_byte) + 1
    start = start if not source[start : node.start_byte].strip() else node.start_byte
    end = node.end_byte
    if body is not None and node.type in grammar.definitions.code:
        documentation = docstring_of(grammar, body)
        end = documentation.end_byte if documentation is not None else body.start_byte
    lines = source[start:end].decode("utf-8", "replace").rstrip().rstrip("{").rstrip().split("\n")
    return "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]
