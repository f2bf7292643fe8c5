"""Functions without a body yet, and places in a body where code is missing. Knows text and trees, never LSP.

A stub's body is empty, or nothing but comments, a docstring and one placeholder: `pass`, `...`, `todo!()`, an error
that says "not implemented" and the like. Offsets are in code points; texts have LF as their only line end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from remask.grammars import Grammar
from remask.grammars.source import code_points, encode

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_CHARACTERS = 100_000
"""A longer text is not looked at: it would hold the loop up."""

_CALL = r"\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*;?"
_PLACEHOLDER = re.compile(
    r"pass|\.\.\.|;"
    rf"|raise\s+NotImplementedError{_CALL}"
    rf"|throw\s+(?:new\s+)?(?:\w+(?:\.|::))*(?:UnsupportedOperationException|NotImplemented\w*){_CALL}"
    r"|throw\s+(?:new\s+)?[\w.:]+\s*\(\s*[\"'`].*(?:todo|implement).*[\"'`]\s*\)\s*;?"
    rf"|(?:todo|unimplemented)!{_CALL}"
    r"|panic!?\s*\(\s*[\"'`].*(?:todo|implement).*[\"'`]\s*\)\s*;?",
    re.IGNORECASE | re.DOTALL,
)
_TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
_OF_STATEMENTS = frozenset(
    {
        *("block", "statement_block", "compound_statement", "statement_list", "constructor_body", "function_body"),
        *("switch_block_statement_group", "case_statement", "switch_case", "switch_default"),
        *("expression_case", "type_case", "communication_case", "default_case"),
    }
)
"""Nodes whose children are statements, in any of the grammars."""
_DECLARES = re.compile(r"(?m)^[ \t]*@[ \t]*(?:\w+\.)*(?:overload|abstract\w*)\b")
_PYTHON_HEADER = re.compile(r"(?m)^[ \t]*(?:async[ \t]+)?def\b.*:[ \t]*$")


@dataclass(frozen=True, slots=True)
class Stub:
    """Where code is missing: `hole` is replaced by `lead`, the code and `tail`.

    `function` and `body` start and end where the whole function does and where its body begins; the text between is
    its signature. `whole` tells a whole body from one place in it.
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


def function_stub(grammar: Grammar, text: str, offset: int) -> Stub | None:
    """The stub whose function holds the offset, or None. Raises GrammarError."""
    if len(text) > MAX_CHARACTERS:
        return None
    tree = _parsed(grammar, text)
    for function, body in tree.functions_at(offset):
        stub = _stub(tree, function, body)
        if stub is not None:
            return None if _needs_no_body(tree, function) else stub
    return _empty_offside(grammar, text, offset) if grammar.text.offside else None


def stub_here(grammar: Grammar, text: str, offset: int) -> Stub | None:
    """The place at the offset where code is missing in a body that has other code. Raises GrammarError.

    It is a placeholder, a comment that says TODO, or a blank line.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    tree = _parsed(grammar, text)
    found = next(tree.functions_at(offset), None)
    if found is None or _stub(tree, *found) is not None:
        return None
    function, body = found
    start, end = _line(text, offset)
    line = text[start:end]
    if not tree.offset(body.start_byte) <= start <= tree.offset(body.end_byte):
        return None
    indent = line[: len(line) - len(line.lstrip())]
    if not line.strip() and tree.is_between_statements(start):
        wanted = indent or _indent_above(grammar, text, start)
        return tree.make(function, body, (start + len(indent), end), lead=wanted[len(indent) :], whole=False)
    if _PLACEHOLDER.fullmatch(line.strip()) and tree.is_statement(start + len(indent)):
        return tree.make(function, body, (start + len(indent), end), whole=False)
    is_comment = line.strip().startswith((*grammar.text.line_comments, "/*", "*"))
    if _TODO.search(line) and is_comment and tree.is_between_statements(end):
        return tree.make(function, body, (end, end), lead="\n" + indent, whole=False)
    return None


class _Tree:
    """A text, its bytes and its tree."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.text = text
        self.source = encode(text)
        self.root = grammar.parse(self.source).root_node

    def offset(self, byte: int) -> int:
        return code_points(self.source, byte)

    def functions_at(self, offset: int) -> Iterator[tuple[Node, Node]]:
        """The functions with a body that hold the offset, the innermost first."""
        from tree_sitter import QueryCursor

        at = len(encode(self.text[:offset]))
        cursor = QueryCursor(self.grammar.function_query)
        cursor.set_byte_range(max(0, at - 1), at + 1)
        found = [
            (m["function"][0], m["body"][0]) for _, m in cursor.matches(self.root) if {"function", "body"} <= m.keys()
        ]
        row = self.source.count(b"\n", 0, at)
        around = [pair for pair in found if _rows(pair[0])[0] <= row <= _rows(pair[0])[1] or _touches(pair[0], at)]
        yield from sorted(around, key=lambda pair: -pair[0].start_byte)

    def is_statement(self, offset: int) -> bool:
        """Whether a statement starts there: no string, comment, argument or the like."""
        at = len(encode(self.text[:offset]))
        node = self.root.named_descendant_for_byte_range(at, at + 1)
        while node is not None and node.start_byte == at:
            if node.type in _OF_STATEMENTS or (node.parent is not None and node.parent.type in _OF_STATEMENTS):
                return True
            node = node.parent
        return False

    def is_between_statements(self, offset: int) -> bool:
        """Whether white space there lies where statements may stand: in a block, or just before one."""
        after = offset + len(self.text[offset:]) - len(self.text[offset:].lstrip())
        at, end = (len(encode(self.text[:one])) for one in (offset, after))
        node = self.root.named_descendant_for_byte_range(at, max(end, at + 1))
        if node is not None and node.type in _OF_STATEMENTS:
            return True
        node = self.root.named_descendant_for_byte_range(end, end + 1)
        while node is not None and node.start_byte == end:
            if node.type in _OF_STATEMENTS:
                return True
            node = node.parent
        return False

    def make(
        self, function: Node, body: Node, hole: tuple[int, int], *, lead: str = "", tail: str = "", whole: bool = True
    ) -> Stub:
        span = self.offset(function.start_byte), self.offset(function.end_byte)
        return Stub(name_of(function, self.source), span, self.offset(body.start_byte), hole, lead, tail, whole)


@lru_cache(maxsize=4)
def _parsed(grammar: Grammar, text: str) -> _Tree:
    """Editors ask again at each move of the cursor."""
    return _Tree(grammar, text)


def name_of(node: Node, source: bytes) -> str:
    """The name that a definition gives, or nothing: lambdas have none."""
    found: Node | None = node
    while found is not None and found.type not in ("identifier", "field_identifier", "property_identifier"):
        inner = found.child_by_field_name("name") or found.child_by_field_name("declarator")
        if inner is None or inner.child_count == 0:
            found = inner
            break
        found = inner
    return source[found.start_byte : found.end_byte].decode("utf-8", "replace") if found is not None else ""


def _stub(tree: _Tree, function: Node, body: Node) -> Stub | None:
    statements = _statements(body)
    comments = [node for node in statements if "comment" in node.type]
    code = [node for node in statements if "comment" not in node.type]
    documented = bool(code) and tree.grammar.text.offside and _is_string(code[0])
    docstring = code.pop(0) if documented else None
    if len(code) > 1 or (code and not _is_placeholder(tree, code[0])):
        return None
    kept = [*comments, *([docstring] if docstring is not None else [])]
    if code and _begins_line(tree, code[0]):
        return tree.make(function, body, (tree.offset(code[0].start_byte), _end(tree, code[0])))
    last = max(kept, key=lambda node: node.end_byte, default=None)
    if last is not None and not code and _begins_line(tree, last):
        end = tree.offset(last.end_byte)
        return tree.make(function, body, (end, end), lead="\n" + _line_indent(tree.text, tree.offset(last.start_byte)))
    if kept and not (code and tree.grammar.text.offside and _rows(code[0])[0] == _rows(kept[0])[0] == _rows(body)[1]):
        return None
    return _on_one_line(tree, function, code[0] if kept else body)


def _needs_no_body(tree: _Tree, function: Node) -> bool:
    """Whether a Python function is a declaration only: of an overload, an abstract method or a protocol."""
    outer = function.parent
    if tree.grammar.name != "python" or outer is None:
        return False
    if outer.type == "decorated_definition":
        marks = tree.source[outer.start_byte : function.start_byte].decode("utf-8", "replace")
        if _DECLARES.search(marks):
            return True
        outer = outer.parent
    owner = outer.parent if outer is not None else None
    bases = owner.child_by_field_name("superclasses") if owner is not None else None
    return bases is not None and re.search(rb"\bProtocol\b", tree.source[bases.start_byte : bases.end_byte]) is not None


def _on_one_line(tree: _Tree, function: Node, body: Node) -> Stub:
    """The body is `{}`, or a placeholder on the signature's line: code goes on lines of its own."""
    outer = _line_indent(tree.text, tree.offset(function.start_byte))
    inner = outer + indent_unit(tree.text)
    start, end = tree.offset(body.start_byte), tree.offset(body.end_byte)
    if tree.grammar.text.offside:
        start = len(tree.text[:start].rstrip(" \t"))
        return tree.make(function, body, (start, end), lead="\n" + inner)
    return tree.make(function, body, (start + 1, end - 1), lead="\n" + inner, tail="\n" + outer)


def _empty_offside(grammar: Grammar, text: str, offset: int) -> Stub | None:
    """A signature with nothing below it, which is no program: judged as if it had a placeholder."""
    start, end = _line(text, offset)
    if not text[start:end].strip():
        end = len(text[:start].rstrip())
        start = text.rfind("\n", 0, end) + 1
    head = text[:end].rstrip()
    below = next((line for line in text[end:].split("\n") if line.strip()), "")
    if not _PYTHON_HEADER.fullmatch(text[start:end]) or _width(below) > _width(text[start:end]):
        return None
    tree = _parsed(grammar, head + " pass" + text[len(head) :])
    for function, body in tree.functions_at(start + len(text[start:end]) - len(text[start:end].lstrip())):
        if tree.offset(body.start_byte) == len(head) + 1 and not _needs_no_body(tree, function):
            stub = _on_one_line(tree, function, body)
            return Stub(
                stub.name, (stub.function[0], len(head)), len(head), (len(head), len(head)), stub.lead, "", True
            )
    return None


def _statements(body: Node) -> list[Node]:
    nodes: list[Node] = []
    for child in body.named_children:
        nodes += child.named_children if child.type == "statement_list" else [child]
    return nodes


def _is_string(node: Node) -> bool:
    inner = node.named_children
    return node.type == "string" or (len(inner) == 1 and inner[0].type == "string")


def _is_placeholder(tree: _Tree, node: Node) -> bool:
    text = tree.source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def _begins_line(tree: _Tree, node: Node) -> bool:
    row = tree.source.rfind(b"\n", 0, node.start_byte) + 1
    return not tree.source[row : node.start_byte].strip()


def _end(tree: _Tree, node: Node) -> int:
    """The end of a statement, with the semicolon that some grammars leave out of it."""
    end = tree.offset(node.end_byte)
    return end + 1 if tree.text[end : end + 1] == ";" else end


def _rows(node: Node) -> tuple[int, int]:
    return node.start_point.row, node.end_point.row


def _touches(node: Node, at: int) -> bool:
    return node.start_byte <= at <= node.end_byte


def _line(text: str, offset: int) -> tuple[int, int]:
    end = text.find("\n", offset)
    return text.rfind("\n", 0, offset) + 1, len(text) if end < 0 else end


def _width(line: str) -> int:
    return len(line) - len(line.lstrip())


def _line_indent(text: str, offset: int) -> str:
    start, end = _line(text, offset)
    line = text[start:end]
    return line[: len(line) - len(line.lstrip())]


def _indent_above(grammar: Grammar, text: str, offset: int) -> str:
    above = text[:offset].rstrip()
    indent = _line_indent(text, len(above))
    return indent + indent_unit(text) if above.endswith(grammar.text.block_opener) else indent


def indent_unit(text: str) -> str:
    """What one level of indentation is in this text: a tab, or the most frequent step to a deeper line; else four."""
    indents = re.findall(r"(?m)^([ \t]*)(?=\S)", text[:50_000])
    if any(indent.startswith("\t") for indent in indents):
        return "\t"
    deeper = Counter(len(b) - len(a) for a, b in pairwise(indents) if len(b) - len(a) > 1)
    return " " * max(deeper, key=lambda step: (deeper[step], -step), default=4)
