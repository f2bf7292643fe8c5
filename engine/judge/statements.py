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
    """What is wrong with the logical lines of `text` that touch `start` to `end`, in a few words; empty for nothing."""
    if grammar.gate.compiler != "python":
        return ""
    allowed: list[int] = []
    header = False
    for line in scan(grammar, text).lines:
        touched = line.start < end and line.end > start
        fits = not allowed or (line.indent > allowed[-1] if header else line.indent in allowed)
        if line.start >= end + 1 and line.start > end:
            break
        if touched and not fits and line.start >= start:
            return "a line at a column that fits no block"
        if touched and not _alone(grammar, text, line):
            return "a line that is no statement"
        while allowed and allowed[-1] >= line.indent:
            allowed.pop()
        allowed.append(line.indent)
        header = opens_block(grammar, text, line)
    return ""


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
