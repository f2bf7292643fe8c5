"""The white space that lines begin with: whose it is, and what one level of it is. Knows texts only, no language.

The one home of these questions for the whole project; what a language's own level is stands in its grammar file.
Texts have LF as their only line end.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

_INDENT = re.compile(r"[ \t\f]*")
_INDENTS = re.compile(r"(?m)^([ \t]*)(?=\S)")
FOUR = "    "
LEAST = 2  # columns; a line that stands one column deeper is aligned with something, not indented


def indent_of(line: str) -> str:
    """The white space at the start of a line; a form feed starts it again."""
    space = _INDENT.match(line)
    assert space is not None
    return space.group().rpartition("\f")[2]


def line_at(text: str, offset: int) -> tuple[int, int]:
    """Where the line that holds the offset starts and ends, its line end left out; in code points."""
    end = text.find("\n", offset)
    return text.rfind("\n", 0, offset) + 1, len(text) if end < 0 else end


def line_indent(text: str, offset: int) -> str:
    """The indentation of the line that holds the offset, in code points."""
    start, end = line_at(text, offset)
    return indent_of(text[start:end])


def indents(text: str) -> list[str]:
    """The indentation of each line that holds something, in their order; empty for a line at column 0."""
    return _INDENTS.findall(text)


def indent_unit(text: str, default: str = FOUR) -> str:
    """What one level of indentation is in a text: a tab, or the most frequent step to a deeper line.

    In a text without such a step, as a piece of a file may be, it is the smallest indentation; in one without any
    indentation it is `default`, the language's own.
    """
    found = indents(text)
    if any("\t" in indent for indent in found):
        return "\t"
    steps = Counter(step for above, below in pairwise(found) if (step := len(below) - len(above)) >= LEAST)
    if steps:
        return " " * max(steps, key=lambda step: (steps[step], -step))
    return min((indent for indent in found if len(indent) >= LEAST), key=len, default=default)
