"""The functions of a parsed text around a place, as the grammar's query finds them. Offsets are in bytes.

Knows trees and grammars; what is done with a function is its callers' concern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remask.grammars.bounded import matches_at
from remask.grammars.language import Grammar

if TYPE_CHECKING:
    from tree_sitter import Node


_NESTED = 3  # an export, a declaration, a declarator


@dataclass(frozen=True, slots=True)
class Function:
    """A function with a body; both are nodes of one tree."""

    node: Node
    body: Node

    def touches(self, at: int) -> bool:
        """Whether the place lies in the function or at one of its ends."""
        return self.node.start_byte <= at <= self.node.end_byte

    def shares_line(self, row: int) -> bool:
        """Whether some of the function stands on this row, counted from 0."""
        return self.node.start_point.row <= row <= self.node.end_point.row


def functions_near(grammar: Grammar, root: Node, at: int) -> list[Function]:
    """The functions that a query around the byte `at` meets, the innermost first. Raises GrammarError.

    The query meets what reaches into the bytes next to `at`, and what holds them; callers say by `touches` or by rows
    which of these they mean. A text so broken that the query takes too long has none.
    """
    found = [
        Function(match["function"][0], match["body"][0])
        for match in matches_at(grammar.function_query, root, max(0, at - 1), at + 1)
        if {"function", "body"} <= match.keys()
    ]
    return sorted(found, key=lambda function: -function.node.start_byte)


def function_named_at(grammar: Grammar, root: Node, at: int) -> Function | None:
    """The function that is the value of what is named at the byte `at`, on the same line: `const f = () => {}`.

    Raises GrammarError.
    """
    node = root.descendant_for_byte_range(at, at)
    row = None if node is None else node.start_point.row
    while node is not None and node.start_point.row == row:
        value = _value(node)
        if value is not None and at < value.start_byte and value.start_point.row == row:
            near = functions_near(grammar, root, value.start_byte + 1)
            return next((function for function in near if function.node == value), None)
        node = node.parent
    return None


def _value(node: Node | None) -> Node | None:
    """What a declaration or assignment gives, be it that of the name itself or of the statement around it."""
    for _ in range(_NESTED):
        if node is None or not node.named_child_count:
            return None
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if value is not None:
            return value.named_child(0) if value.type == "expression_list" else value
        node = node.named_child(node.named_child_count - 1)
    return None


def is_declaration(grammar: Grammar, root: Node, function: Node) -> bool:
    """Whether a function is a declaration only, as one of an overload is: it never gets a body. Raises GrammarError."""
    query = grammar.declaration_query
    if query is None:
        return False
    found = matches_at(query, root, function.start_byte, function.start_byte + 1)
    return any(node == function for match in found for node in match.get("function", ()))


def docstring_of(grammar: Grammar, body: Node) -> Node | None:
    """The statement at the start of a body that says what it is for, in languages that have such; comments may precede.

    Only a statement that is nothing else counts.
    """
    wanted = grammar.definitions.docstring
    first = next((node for node in body.named_children if "comment" not in node.type), None) if wanted else None
    if first is None:
        return None
    inner = first.named_children
    return first if first.type == wanted or (len(inner) == 1 and inner[0].type == wanted) else None
