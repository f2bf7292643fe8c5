"""A text with its tree, asked in code points: which functions hold a place, and where statements stand.

Knows grammars and trees, never LSP. Texts have LF as their only line end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from remask.grammars import Grammar, GrammarError
from remask.grammars.bounded import parse_bounded
from remask.grammars.functions import Function, function_named_at, functions_near
from remask.grammars.names import name_of
from remask.grammars.source import byte_count, code_points, encode

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_CHARACTERS = 100_000
"""A longer text is not looked at: it would hold the loop up."""


@dataclass(frozen=True, slots=True)
class Stub:
    """Where code is missing: `hole` is replaced by `lead`, the code and `tail`.

    `function` is the whole function's start and end; from its start to `body_start` goes its signature. `whole` tells
    a whole body from one place in it.
    """

    name: str
    function: tuple[int, int]
    body_start: int
    hole: tuple[int, int]
    lead: str
    tail: str
    whole: bool

    def around(self, text: str) -> tuple[str, str]:
        """What stands before and after the code that is missing."""
        return text[: self.hole[0]] + self.lead, self.tail + text[self.hole[1] :]

    def filled(self, text: str, code: str) -> str:
        """The text with the code in its place."""
        before, after = self.around(text)
        return before + code + after


class Parsed:
    """A text, its bytes and its tree. Raises GrammarError where there is no parser, or it takes too long."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.text = text
        self.source = encode(text)
        self.root = parse_bounded(grammar, self.source).root_node

    def offset(self, byte: int) -> int:
        """A byte's place in code points."""
        return code_points(self.source, byte)

    def text_of(self, node: Node) -> str:
        """What a node spans."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def functions_at(self, offset: int) -> list[Function]:
        """The functions with a body on the line of the offset or around it, the innermost first."""
        at = self._byte(offset)
        row = self.source.count(b"\n", 0, at)
        near = functions_near(self.grammar, self.root, at)
        return [function for function in near if function.shares_line(row) or function.touches(at)]

    def function_named_at(self, offset: int) -> Function | None:
        """The function that a variable, field or the like gets that is named at the offset."""
        return function_named_at(self.grammar, self.root, self._byte(offset))

    def is_statement(self, offset: int) -> bool:
        """Whether a statement starts there: no string, comment, argument or the like."""
        blocks = self.grammar.nodes.blocks
        at = self._byte(offset)
        node = self.root.named_descendant_for_byte_range(at, at + 1)
        while node is not None and node.start_byte == at:
            if node.type in blocks or (node.parent is not None and node.parent.type in blocks):
                return True
            node = node.parent
        return False

    def is_between_statements(self, offset: int) -> bool:
        """Whether white space there lies where statements may stand: in a block, or just before one."""
        blocks = self.grammar.nodes.blocks
        after = offset + len(self.text[offset:]) - len(self.text[offset:].lstrip())
        at, end = self._byte(offset), self._byte(after)
        node = self.root.named_descendant_for_byte_range(at, max(end, at + 1))
        if node is not None and node.type in blocks:
            return True
        node = self.root.named_descendant_for_byte_range(end, end + 1)
        while node is not None and node.start_byte == end:
            if node.type in blocks:
                return True
            node = node.parent
        return False

    def stub(
        self, function: Function, hole: tuple[int, int], *, lead: str = "", tail: str = "", whole: bool = True
    ) -> Stub:
        """What is missing in a function."""
        span = self.offset(function.node.start_byte), self.offset(function.node.end_byte)
        body_start = self.offset(function.body.start_byte)
        return Stub(name_of(function.node, self.source), span, body_start, hole, lead, tail, whole)

    def _byte(self, offset: int) -> int:
        return byte_count(self.text[:offset])


def parsed(grammar: Grammar, text: str) -> Parsed:
    """The text's tree, kept for a while: editors ask again at each move of the cursor. Raises GrammarError."""
    found = _parsed(grammar, text)
    if isinstance(found, str):
        raise GrammarError(found)
    return found


@lru_cache(maxsize=4)
def _parsed(grammar: Grammar, text: str) -> Parsed | str:
    """The tree, or why there is none: that is not to be found out again either."""
    try:
        return Parsed(grammar, text)
    except GrammarError as error:
        return error.message
