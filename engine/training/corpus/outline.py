"""Functions and statements of a file, as offsets into its text. Knows the grammar, never a token."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from remask.grammars.language import Grammar
from remask.grammars.source import encode

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class Function:
    """Half-open offsets in code points: from the line start of its header or decorators to its end.

    `body` is where its first statement starts, `code` the first one behind a docstring (= `body` without one),
    `close` where its last statement ends.
    """

    start: int
    end: int
    body: int
    code: int
    close: int

    @property
    def documented(self) -> bool:
        """Whether a docstring opens the body and something follows it."""
        return self.body < self.code < self.close


@dataclass(frozen=True, slots=True)
class Outline:
    """What of a file is needed to dig holes into it; both lists are sorted by their starts."""

    text: str
    functions: tuple[Function, ...]
    statements: tuple[tuple[int, int], ...]

    def statements_around(self, at: int, within: Function) -> list[tuple[int, int]]:
        """The statements of a function's code that hold the offset, the outermost first."""
        first = bisect_left(self.statements, (within.code, 0))
        last = bisect_right(self.statements, (at, len(self.text) + 1))
        return [s for s in self.statements[first:last] if at < s[1] <= within.close]


def outline(grammar: Grammar, text: str) -> Outline:
    """Parse `text` and note where its functions and statements lie. Raises GrammarError."""
    from tree_sitter import QueryCursor

    source = encode(text)
    root = grammar.parse(source).root_node
    places = _code_points(source)
    matches = QueryCursor(grammar.function_query).matches(root)
    pairs = [(m["function"][0], m["body"][0]) for _, m in matches if {"function", "body"} <= m.keys()]
    functions = (_function(text, places, function, body) for function, body in pairs)
    found = QueryCursor(grammar.statement_query).captures(root).get("statement", [])
    statements = {(_at(places, n.start_byte), _at(places, n.end_byte)) for n in found if n.type != "comment"}
    kept = {f for f in functions if f is not None}
    return Outline(text, tuple(sorted(kept, key=lambda f: (f.start, f.end))), tuple(sorted(statements)))


def _function(text: str, places: list[int] | None, function: Node, body: Node) -> Function | None:
    outer = (
        function.parent if function.parent is not None and function.parent.type.startswith("decorated") else function
    )
    start, end = _at(places, outer.start_byte), _at(places, function.end_byte)
    begin, close = _at(places, body.start_byte), _at(places, body.end_byte)
    if text.startswith("{", begin) and text.endswith("}", begin, close):
        inner = text[begin + 1 : close - 1]
        close = begin + 1 + len(inner.rstrip())
        begin += 1 + len(inner) - len(inner.lstrip())
    if begin >= close:
        return None
    first = next((n for n in body.named_children if n.type != "comment"), None)
    code = begin
    if first is not None and _is_docstring(first):
        following = first.next_named_sibling
        code = _at(places, following.start_byte) if following is not None else close
    return Function(text.rfind("\n", 0, start) + 1, end, begin, code, close)


def _is_docstring(node: Node) -> bool:
    children = node.named_children
    return node.type == "expression_statement" and len(children) == 1 and children[0].type == "string"


def _code_points(source: bytes) -> list[int] | None:
    """Code point offset of every byte offset, or None where they are the same."""
    if source.isascii():
        return None
    starts = (np.frombuffer(source, np.uint8) & 0xC0) != 0x80
    counted: list[int] = np.concatenate([[0], np.cumsum(starts)]).tolist()
    return counted


def _at(places: list[int] | None, offset: int) -> int:
    return offset if places is None else places[offset]
