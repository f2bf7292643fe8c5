"""Places in a function's body where code is missing among other code. Knows texts and trees, never LSP.

Such a place is a placeholder, a comment that says TODO, or a blank line, wherever statements may stand. Offsets are in
code points; texts have LF as their only line end.
"""

from __future__ import annotations

from dataclasses import replace

from remask.grammars import Grammar, GrammarError
from remask.grammars.functions import Function
from remask.grammars.indentation import indent_of, indent_unit, line_at, line_indent
from remask.grammars.placeholders import is_placeholder, is_todo
from remask.lsp_server.parsed import MAX_CHARACTERS, Parsed, Stub, parsed
from remask.lsp_server.stubs import end_of_code_above, stub_of


def stub_here(grammar: Grammar, text: str, offset: int) -> Stub | None:
    """The place at the offset where code is missing in a body that has other code, or None. Raises GrammarError."""
    if len(text) > MAX_CHARACTERS:
        return None
    tree = parsed(grammar, text)
    start, end = line_at(text, offset)
    line = text[start:end]
    indent = indent_of(line)
    function = next(iter(tree.functions_at(offset)), None) or _ended_above(tree, start, line)
    if function is None or stub_of(tree, function) is not None:
        return None
    first = start + len(indent)
    in_body = tree.offset(function.body.start_byte) <= start <= tree.offset(function.body.end_byte)
    if is_placeholder(grammar, line):
        return tree.stub(function, (first, end), whole=False) if in_body and tree.is_statement(first) else None
    if not line.strip():
        wanted = indent or _indent_above(grammar, text, start)
        stub = tree.stub(function, (first, end), lead=wanted[len(indent) :], whole=False)
    elif is_todo(grammar, line):
        stub = tree.stub(function, (end, end), lead="\n" + indent, whole=False)
    else:
        return None
    if in_body and tree.is_between_statements(stub.hole[0] if line.strip() else start):
        return stub
    return _at_edge(tree, stub) if grammar.text.offside else None


def _ended_above(tree: Parsed, start: int, line: str) -> Function | None:
    """The function whose code ends above a line that its indentation puts into the body; no node says so."""
    indent = indent_of(line)
    if not indent or not tree.grammar.text.offside:
        return None
    near = tree.functions_at(end_of_code_above(tree.grammar, tree.text, start))
    outer = (len(line_indent(tree.text, tree.offset(function.node.start_byte))) for function in near)
    return next((function for function, width in zip(near, outer, strict=True) if width < len(indent)), None)


def _at_edge(tree: Parsed, stub: Stub) -> Stub | None:
    """The stub if a statement may stand there: blocks that indentation makes leave out what stands at their edges."""
    try:
        filled = parsed(tree.grammar, stub.filled(tree.text, tree.grammar.gate.neutral[0]))
    except GrammarError:
        return None
    at = stub.hole[0] + len(stub.lead)
    function = next(iter(filled.functions_at(at)), None)
    if function is None or function.node.has_error or not filled.is_statement(at):
        return None
    if filled.offset(function.node.start_byte) != stub.function[0]:
        return None
    return replace(stub, body_start=min(stub.body_start, stub.hole[0]))


def _indent_above(grammar: Grammar, text: str, offset: int) -> str:
    above = text[:offset].rstrip()
    indent = line_indent(text, len(above))
    if not above.endswith(grammar.text.block_opener):
        return indent
    return indent + indent_unit(text, grammar.text.indent)
