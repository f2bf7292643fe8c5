"""Functions without a body yet. Knows texts and trees, never LSP.

A stub's body is empty, or nothing but comments, a docstring and one placeholder: `pass`, `...`, `todo!()`, an error
that says "not implemented" and the like. Offsets are in code points; texts have LF as their only line end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remask.grammars import Grammar
from remask.grammars.functions import Function, docstring_of, is_declaration
from remask.grammars.indentation import indent_of, indent_unit, indents, line_at, line_indent
from remask.grammars.placeholders import is_placeholder
from remask.lsp_server.parsed import MAX_CHARACTERS, Parsed, Stub, parsed

if TYPE_CHECKING:
    from tree_sitter import Node


def function_stub(grammar: Grammar, text: str, offset: int) -> Stub | None:
    """The stub whose function holds the offset, or None. Raises GrammarError."""
    if len(text) > MAX_CHARACTERS:
        return None
    tree = parsed(grammar, text)
    found = [(function, stub_of(tree, function)) for function in tree.functions_at(offset)]
    if not any(stub for _, stub in found) and grammar.text.offside:
        # An empty body has no node that could reach down to where the cursor stands.
        above = end_of_code_above(grammar, text, offset)
        here = indent_of(text[slice(*line_at(text, offset))])
        near = tree.functions_at(above)
        bare = [one for one in near if not one.body.named_child_count or len(here) > len(_outer(tree, one))]
        found = [(function, stub_of(tree, function)) for function in bare]
    named = None if any(stub for _, stub in found) else tree.function_named_at(offset)
    if named is not None:
        found = [(named, stub_of(tree, named))]
    function, stub = next(((function, stub) for function, stub in found if stub is not None), (None, None))
    return None if function is None or is_declaration(grammar, tree.root, function.node) else stub


def stub_of(tree: Parsed, function: Function) -> Stub | None:
    """The function as a stub; None if its body has other code."""
    body = function.body
    offside = tree.grammar.text.offside
    statements = _statements(body, tree.grammar.nodes.lists)
    comments = [node for node in statements if "comment" in node.type]
    code = [node for node in statements if "comment" not in node.type]
    docstring = docstring_of(tree.grammar, body)
    code = code[1:] if docstring is not None else code
    if len(code) > 1 or (code and not is_placeholder(tree.grammar, tree.text_of(code[0]))):
        return None
    if offside and not statements:
        return _below_signature(tree, function)
    if code and _begins_line(tree, code[0]):
        return tree.stub(function, (tree.offset(code[0].start_byte), _end(tree, code[0])))
    kept = [*comments, *([docstring] if docstring is not None else [])]
    last = max(kept, key=lambda node: node.end_byte, default=None)
    if last is not None and not code and _begins_line(tree, last):
        end = tree.offset(last.end_byte)
        lead = "\n" + line_indent(tree.text, tree.offset(last.start_byte))
        return tree.stub(function, (end, _past_blank(tree, function, end)), lead=lead)
    if kept and not (code and offside and _all_on_one_line(code[0], kept[0], body)):
        return None
    return _on_one_line(tree, function, code[0] if kept else body)


def _below_signature(tree: Parsed, function: Function) -> Stub | None:
    """Nothing but comments, if that, stands deeper below the signature: the body goes below them."""
    text = tree.text
    header = end = tree.offset(function.body.end_byte)
    outer = _outer(tree, function)
    inner = ""
    below = line_at(text, end)[1] + 1
    while below < len(text):
        start, stop = line_at(text, below)
        line = text[start:stop]
        if line.strip():
            if len(indent_of(line)) <= len(outer):
                break
            if not line.strip().startswith(tree.grammar.text.line_comments):
                return None
            inner, end = indent_of(line), start + len(line.rstrip())
        below = stop + 1
    if text[header : line_at(text, header)[1]].strip():
        return None
    past = _past_blank(tree, function, end)
    if not any(indents(text)):
        inner = text[line_at(text, past)[0] : past] if past > end else inner  # all that shows what a level is
    stub = tree.stub(function, (end, past), lead="\n" + (inner or outer + _unit(tree)))
    return replace(stub, function=(stub.function[0], end), body_start=end)


def _past_blank(tree: Parsed, function: Function, end: int) -> int:
    """The end of the last blank line below `end` that is indented for the body: the code replaces it."""
    text = tree.text
    outer = _outer(tree, function)
    found, start = end, line_at(text, end)[1] + 1
    if text[end : start - 1].strip():
        return end
    while start < len(text):
        stop = line_at(text, start)[1]
        if text[start:stop].strip():
            break
        if stop - start > len(outer):
            found = stop
        start = stop + 1
    return found


def _on_one_line(tree: Parsed, function: Function, body: Node) -> Stub:
    """The body is `{}`, or a placeholder on the signature's line: code goes on lines of its own."""
    outer = _outer(tree, function)
    inner = outer + _unit(tree)
    start, end = tree.offset(body.start_byte), tree.offset(body.end_byte)
    if tree.grammar.text.offside:
        start = len(tree.text[:start].rstrip(" \t"))
        return tree.stub(function, (start, end), lead="\n" + inner)
    if end - start < len("{}") or not tree.text.endswith("}", start, end):  # its end is not written yet
        return tree.stub(function, (start + 1, end), lead="\n" + inner, tail=f"\n{outer}}}")
    return tree.stub(function, (start + 1, end - 1), lead="\n" + inner, tail="\n" + outer)


def end_of_code_above(grammar: Grammar, text: str, offset: int) -> int:
    """The end of the last line at the offset or above it that is neither blank nor a comment."""
    start, end = line_at(text, offset)
    while start and (not (line := text[start:end].strip()) or line.startswith(grammar.text.line_comments)):
        start, end = line_at(text, start - 1)
    return start + len(text[start:end].rstrip())


def _outer(tree: Parsed, function: Function) -> str:
    return line_indent(tree.text, tree.offset(function.node.start_byte))


def _unit(tree: Parsed) -> str:
    return indent_unit(tree.text, tree.grammar.text.indent)


def _statements(body: Node, lists: tuple[str, ...]) -> list[Node]:
    nodes: list[Node] = []
    for child in body.named_children:
        nodes += child.named_children if child.type in lists else [child]
    return nodes


def _begins_line(tree: Parsed, node: Node) -> bool:
    row = tree.source.rfind(b"\n", 0, node.start_byte) + 1
    return not tree.source[row : node.start_byte].strip()


def _all_on_one_line(*nodes: Node) -> bool:
    return len({nodes[0].start_point.row, nodes[1].start_point.row, nodes[-1].end_point.row}) == 1


def _end(tree: Parsed, node: Node) -> int:
    """The end of a statement, with the semicolon that some grammars leave out of it."""
    end = tree.offset(node.end_byte)
    return end + 1 if tree.text[end : end + 1] == ";" else end
