"""The part of a file that a draft can be judged in: the outermost function around the cursor, or the statement.

Cut by indentation and brackets alone, so that it is found in a broken file, and the same for every draft.
Offsets are in code points.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from remask.grammars.language import Grammar
from remask.grammars.lexis import CodeLine, scan, scan_prefix

FIRST_LOOK = 8_000
"""Code points of the suffix in which the end of the window is looked for first."""

_SPACE = re.compile(r"[ \t\f]*")
_WORD = re.compile(r"[ \t\f]*(\w+|#)?")
_BRACKET = re.compile(r"[ \t]*[)\]}{]")


@dataclass(frozen=True, slots=True)
class Window:
    """What of the file is judged; `head` above it and `foot` below are made up, so that a fragment can stand alone."""

    head: str
    prefix: str
    suffix: str
    foot: str

    def text(self, draft: str) -> str:
        """The window with `draft` at the cursor."""
        return f"{self.head}{self.prefix}{draft}{self.suffix}{self.foot}"

    @property
    def cursor(self) -> int:
        """Where the draft starts in `text`, in code points."""
        return len(self.head) + len(self.prefix)

    @property
    def rest(self) -> str:
        """What follows the cursor on its line."""
        return self.suffix.partition("\n")[0]


def window(grammar: Grammar, prefix: str, suffix: str) -> Window:
    """The window around the cursor between `prefix` and `suffix`. Never raises; linear in the texts at worst."""
    lexis = scan_prefix(grammar, prefix)
    chain = _enclosing(grammar, prefix, lexis.lines)
    if not chain:
        return Window("", prefix, suffix, "")
    outermost = _outermost(grammar, prefix, [lexis.lines[index] for index in chain])
    first = lexis.lines[_above_decorators(prefix, lexis.lines, chain[outermost])]
    above = [_space(prefix, lexis.lines[index].start) for index in reversed(chain[outermost + 1 :])]
    head = "".join(space + grammar.gate.wrapper for space in above)
    end = _end(grammar, prefix[lexis.anchor :], suffix, first.indent)
    foot = _foot(grammar, suffix, end, [*above, _space(prefix, first.start)])
    return Window(head, prefix[first.start :], suffix[:end], foot)


def _foot(grammar: Grammar, suffix: str, end: int, spaces: list[str]) -> str:
    """A statement where the file goes on, if that is a column that the window knows: a draft may not close it off."""
    space = _space(suffix, end)
    if not grammar.text.offside or end == len(suffix) or space not in spaces:
        return ""
    return f"{space}{grammar.gate.neutral[0]}\n"


def _enclosing(grammar: Grammar, text: str, lines: tuple[CodeLine, ...]) -> list[int]:
    """Indices of the last line and of the lines that it stands under, each further left, innermost first."""
    chain: list[int] = []
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if (not chain or line.indent < lines[chain[-1]].indent) and not _continues(grammar, text, line.start):
            chain.append(index)
            if line.indent == 0:
                break
    return chain


def _outermost(grammar: Grammar, text: str, chain: list[CodeLine]) -> int:
    """Which line of the chain the window starts with: the outermost function, or else the outermost of all."""
    if grammar.text.offside:
        starts = [n for n, line in enumerate(chain) if _function(grammar).match(text, line.start)]
        if starts:
            return starts[-1]
    return len(chain) - 1


def _above_decorators(text: str, lines: tuple[CodeLine, ...], index: int) -> int:
    indent = lines[index].indent
    while (
        index and lines[index - 1].indent == indent and text[lines[index - 1].start :].lstrip(" \t\f").startswith("@")
    ):
        index -= 1
    return index


def _end(grammar: Grammar, line: str, suffix: str, base: int) -> int:
    """Where in `suffix` the first statement stands that the window does not need."""
    look = FIRST_LOOK
    below = suffix.find("\n") + 1
    while below:
        for found in scan(grammar, line + suffix[:look]).lines:
            start = found.start - len(line)
            if start >= below and found.indent <= base and not _continues(grammar, suffix, start):
                return _above_leading(grammar, suffix, start, below)
        if look >= len(suffix):
            break
        look *= 8
    return len(suffix)


def _above_leading(grammar: Grammar, text: str, start: int, least: int) -> int:
    """The start of the lines directly above that wait for this one: an open bracket hides them from the scan."""
    while grammar.gate.leading and start > least:
        above = text.rfind("\n", 0, start - 1) + 1
        if above < least or not text[above:start].lstrip(" \t").startswith(grammar.gate.leading):
            break
        start = above
    return start


def _continues(grammar: Grammar, text: str, start: int) -> bool:
    """Whether the line goes on with a statement above it: a clause, or a bracket."""
    if _BRACKET.match(text, start):
        return True
    word = _WORD.match(text, start)
    return word is not None and word.group(1) in grammar.text.clause_words


@cache
def _function(grammar: Grammar) -> re.Pattern[str]:
    return re.compile(rf"[ \t]*{grammar.text.function_start}")


def _space(text: str, start: int) -> str:
    space = _SPACE.match(text, start)
    return space.group() if space else ""
