"""Where in the code a hole lies: how far a completion should reach, and the function and statement around it.

Knows the text and the grammar, never the model. Offsets are in code points of prefix + suffix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remask.contract.messages import Extent
from remask.grammars.blocks import opens_block
from remask.grammars.functions import Function, functions_near
from remask.grammars.language import Grammar
from remask.grammars.lexis import CodeLine, Lexis, scan, scan_prefix, width
from remask.grammars.placeholders import is_placeholder
from remask.grammars.source import code_points, encode

if TYPE_CHECKING:
    from tree_sitter import Node

LOOKAHEAD = 4_000
"""Code points of the suffix that are looked at to see whether a block has content already."""

_CLOSERS = ")]}>,;:"


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Region:
    """The innermost function around a cursor, its body, and the innermost statement, where there is one."""

    function: Span
    body: Span
    statement: Span | None


def completion_extent(grammar: Grammar, prefix: str, suffix: str) -> Extent:
    """What `Extent.AUTO` means here: BLOCK where a block was opened and holds nothing yet, else LINE.

    LINE wherever code other than closers follows on the line. Needs no parse, and never raises.
    """
    rest, _, below = suffix.partition("\n")
    if rest.strip().strip(_CLOSERS):
        return Extent.LINE
    lexis = scan_prefix(grammar, prefix)
    header = None if lexis.inside else _open_header(grammar, prefix, lexis)
    if header is None:
        return Extent.LINE
    if not grammar.text.offside and rest.strip():
        return Extent.BLOCK if rest.lstrip().startswith("}") else Extent.LINE
    return Extent.BLOCK if _is_empty(grammar, header, below[:LOOKAHEAD]) else Extent.LINE


def enclosing_region(grammar: Grammar, prefix: str, suffix: str) -> Region | None:
    """The innermost function around the cursor as the parser sees it, or None. Raises GrammarError.

    A cursor on a blank line below a function's code belongs to it if it stands right of the function's start.
    """
    source = encode(prefix + suffix)
    probe = _probe(grammar, prefix)
    at = len(encode(prefix[:probe]))
    root = grammar.parse(source).root_node
    column = width(prefix[prefix.rfind("\n") + 1 :]) if probe < len(prefix) else None
    function = next((one for one in functions_near(grammar, root, at) if _holds(one, at, column)), None)
    if function is None:
        return None
    statement = _statement(grammar, source, function.node, at)
    return Region(_span(source, function.node), _span(source, function.body), statement)


def _open_header(grammar: Grammar, prefix: str, lexis: Lexis) -> CodeLine | None:
    """The line that opens the block at the cursor, if nothing but a docstring stands between."""
    if lexis.stack and (grammar.text.offside or lexis.stack[-1][0] != "{"):
        return None
    lines = list(lexis.lines[-4:])
    head = prefix[lexis.anchor :]
    documented = False
    while lines and lines[-1].bare and not head.strip():
        documented = True
        lines.pop()
    if not lines or not opens_block(grammar, prefix, lines[-1]):
        return None
    if head.strip() and lines[-1].start != lexis.anchor:
        return None
    return None if documented and width(head) <= lines[-1].indent else lines[-1]


def _is_empty(grammar: Grammar, header: CodeLine, below: str) -> bool:
    lines = scan(grammar, below).lines[:2]
    while lines and is_placeholder(grammar, below[lines[0].start : lines[0].tail]):
        lines = lines[1:]
    return not lines or lines[0].indent <= header.indent


def _probe(grammar: Grammar, prefix: str) -> int:
    """The cursor, or on a blank line the end of the last code before it."""
    lexis = scan_prefix(grammar, prefix)
    blank = not prefix[lexis.anchor :].strip() and not lexis.inside
    return lexis.lines[-1].tail if blank and lexis.lines else len(prefix)


def _holds(function: Function, at: int, column: int | None) -> bool:
    if not function.touches(at):
        return False
    return column is None or at < function.node.end_byte or column > function.node.start_point.column


def _statement(grammar: Grammar, source: bytes, function: Node, at: int) -> Span | None:
    from tree_sitter import QueryCursor

    cursor = QueryCursor(grammar.statement_query)
    cursor.set_byte_range(max(0, at - 1), at + 1)
    nodes = [n for n in cursor.captures(function).get("statement", []) if n.start_byte <= at <= n.end_byte]
    inner = max(nodes, key=lambda n: (n.start_byte, -n.end_byte), default=None)
    return _span(source, inner) if inner is not None and inner.start_byte > function.start_byte else None


def _span(source: bytes, node: Node) -> Span:
    return Span(code_points(source, node.start_byte), code_points(source, node.end_byte))
