"""What an indentation parser accepts and the language does not: wrong columns, empty blocks, stray clauses.

Looks at a finished tree and the bytes of its text. Says nothing about nodes with errors in them: those are judged
by the parser. Rules after CPython's tokenizer: same column, same bytes. Offsets are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remask.grammars.indentation import indent_of
from remask.grammars.lexis import width

if TYPE_CHECKING:
    from tree_sitter import Node


_CLAUSES = {"elif_clause", "else_clause", "except_clause", "except_group_clause", "finally_clause"}
_BLOCKLESS = {
    "expression_statement",
    "comment",
    "import_statement",
    "import_from_statement",
    "return_statement",
    "string",
}


@dataclass(frozen=True, slots=True)
class LayoutError:
    """One line that stands in the wrong place; `offset` is the first byte of what stands there."""

    offset: int
    what: str


def layout_errors(root: Node, source: bytes, start: int = 0, end: int | None = None) -> Iterator[LayoutError]:
    """The layout errors in blocks that touch the bytes from `start` to `end`, in no certain order."""
    stop = len(source) if end is None else end
    pending = [root]
    while pending:
        node = pending.pop()
        if node.end_byte < start or node.start_byte > stop:
            continue
        if node.type == "module":
            yield from _children(node, source, b"")
        elif node.type == "block":
            yield from _block(node, source)
        elif node.type in _CLAUSES or node.type == "decorated_definition":
            yield from _aligned(node, source)
        if node.type not in _BLOCKLESS:
            pending.extend(node.named_children)


def _block(node: Node, source: bytes) -> Iterator[LayoutError]:
    code = [child for child in node.named_children if child.type != "comment"]
    parent = node.parent
    if not code or parent is None:
        yield LayoutError(node.start_byte, "a block with nothing in it")
        return
    first = _indent(source, code[0])
    if first is None:
        below = [child for child in code if _indent(source, child) is not None]
        if below and not node.has_error:
            yield LayoutError(below[0].start_byte, "a line below a block that stands on its header's line")
        return
    if _columns(first) <= _columns(_indent_before(source, parent)):
        yield LayoutError(code[0].start_byte, "a block that stands no deeper than its header")
        return
    yield from _children(node, source, first)


def _children(node: Node, source: bytes, indent: bytes) -> Iterator[LayoutError]:
    for child in node.named_children:
        if child.type in ("comment", "ERROR"):
            continue
        own = _indent(source, child)
        if own is not None and own != indent:
            yield LayoutError(child.start_byte, "a line at a column that fits no block")


def _aligned(node: Node, source: bytes) -> Iterator[LayoutError]:
    """A clause stands under its statement, and all parts of a decorated definition under each other."""
    if node.type == "decorated_definition":
        parts, base = node.named_children, _indent_before(source, node)
    else:
        parent = node.parent
        if parent is None or parent.type == "ERROR":
            return
        parts, base = [node], _indent_before(source, parent)
    for part in parts:
        own = _indent(source, part)
        if part.type != "comment" and own is not None and own != base:
            yield LayoutError(part.start_byte, "a clause that does not stand under its statement")


def _indent(source: bytes, node: Node) -> bytes | None:
    """The indentation bytes of a node that is the first on its line, else None."""
    row = source.rfind(b"\n", 0, node.start_byte) + 1
    space = source[row : node.start_byte]
    if space.strip(b" \t\f\r") or (source.endswith(b"\\\n", 0, row) and _joined(node, row)):
        return None
    return space.rpartition(b"\f")[2]


def _joined(node: Node, row: int) -> bool:
    """Whether the backslash before `row` joins two lines, and is not the end of a comment."""
    root = node
    while root.parent is not None:
        root = root.parent
    leaf = root.descendant_for_byte_range(row - 2, row - 1)
    return leaf is None or leaf.type != "comment"


def _indent_before(source: bytes, node: Node) -> bytes:
    """The indentation of the line on which a node starts, as far as the node; it is ASCII."""
    row = source.rfind(b"\n", 0, node.start_byte) + 1
    return indent_of(source[row : node.start_byte].decode("utf-8", "replace")).encode()


def _columns(indent: bytes) -> int:
    return width(indent.decode("ascii"))
