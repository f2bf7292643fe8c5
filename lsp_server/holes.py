"""Places in a function's body where code is missing among other code. Knows texts and trees, never LSP.

Such a place is a placeholder, a comment that says TODO, or a blank line, wherever statements may stand. Offsets are in
code points; texts have LF as their only line end.
"""

from __future__ import annotations

from remask.grammars import Grammar
from remask.grammars.indentation import indent_of, indent_unit, line_at, line_indent
from remask.grammars.placeholders import is_placeholder, is_todo
from remask.lsp_server.parsed import MAX_CHARACTERS, Stub, parsed
from remask.lsp_server.stubs import stub_of


def stub_here(grammar: Grammar, text: str, offset: int) -> Stub | None:
    """The place at the offset where code is missing in a body that has other code, or None. Raises GrammarError."""
    if len(text) > MAX_CHARACTERS:
        return None
    tree = parsed(grammar, text)
    function = next(iter(tree.functions_at(offset)), None)
    if function is None or stub_of(tree, function) is not None:
        return None
    start, end = line_at(text, offset)
    if not tree.offset(function.body.start_byte) <= start <= tree.offset(function.body.end_byte):
        return None
    line = text[start:end]
    indent = indent_of(line)
    first = start + len(indent)
    if not line.strip() and tree.is_between_statements(start):
        wanted = indent or _indent_above(grammar, text, start)
        return tree.stub(function, (first, end), lead=wanted[len(indent) :], whole=False)
    if is_placeholder(grammar, line) and tree.is_statement(first):
        return tree.stub(function, (first, end), whole=False)
    if is_todo(grammar, line) and tree.is_between_statements(end):
        return tree.stub(function, (end, end), lead="\n" + indent, whole=False)
    return None


def _indent_above(grammar: Grammar, text: str, offset: int) -> str:
    above = text[:offset].rstrip()
    indent = line_indent(text, len(above))
    if not above.endswith(grammar.text.block_opener):
        return indent
    return indent + indent_unit(text, grammar.text.indent)
