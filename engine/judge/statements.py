"""Judging the lines of a draft one by one, for a file that is broken somewhere near them.

Each logical line must be a statement, or the header of one, by itself, and stand at a column that the lines above
it allow. Knows Python's clauses; other languages have no such check. Offsets are in code points.
"""

from __future__ import annotations

from remask.engine.judge.compilers import python_parses
from remask.grammars.blocks import opens_block
from remask.grammars.language import Grammar
from remask.grammars.lexis import CodeLine, scan

# What a clause needs above and below it to be a statement; {} is the clause with an empty body.
_CONTEXT = {
    "elif": "if _: pass\n{}",
    "else": "if _: pass\n{}",
    "except": "try: pass\n{}",
    "finally": "try: pass\n{}",
    "try": "{}\nfinally: pass",
    "case": "match _:\n {}",
}


def wrong_line(grammar: Grammar, text: str, start: int, end: int) -> str:
    """What is wrong with the logical lines of `text` that touch `start` to `end`, in a few words; empty for nothing.

    The first line below them may not stand deeper than they allow either: what would take it belongs into the draft.
    """
    if grammar.gate.compiler != "python":
        return ""
    open_blocks: list[int] = []
    header = False
    for line in scan(grammar, text).lines:
        if line.end > start:
            below = line.start > end
            if line.start >= start and not _fits(line.indent, open_blocks, header, below):
                return "a line at a column that fits no block"
            if below:
                return ""
            if not _alone(grammar, text, line):
                return "a line that is no statement"
        while open_blocks and open_blocks[-1] >= line.indent:
            open_blocks.pop()
        open_blocks.append(line.indent)
        header = opens_block(grammar, text, line)
    return ""


def _fits(indent: int, open_blocks: list[int], header: bool, below: bool) -> bool:
    if not open_blocks:
        return True
    if header:
        return indent > open_blocks[-1]
    return indent in open_blocks or (below and indent < open_blocks[-1])


def _alone(grammar: Grammar, text: str, line: CodeLine) -> bool:
    code = text[line.start : line.tail].lstrip(" \t\f")
    if code.startswith("@"):
        return python_parses(f"{code}\ndef _(): pass")
    if not opens_block(grammar, text, line):
        return python_parses(code) or _one_liner(code)
    return python_parses(_in_context(f"{code} pass"))


def _one_liner(code: str) -> bool:
    """Whether the code is a clause with its body on the same line."""
    return _word(code) in _CONTEXT and python_parses(_in_context(code))


def _in_context(code: str) -> str:
    return _CONTEXT.get(_word(code), "{}").replace("{}", code)


def _word(code: str) -> str:
    return code[: len(code) - len(code.lstrip("abcdefghijklmnopqrstuvwxyz"))]
