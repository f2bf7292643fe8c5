"""Rules about the indentation of a completion. Pure; texts have LF as their only line end.

Each rule mends what is certainly wrong or leaves the text as it is. What a level of indentation is says
grammars/indentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from remask.grammars.indentation import indent_unit, indents

_LOOK_BACK = 4_000  # characters of the prefix that show how the file is indented
_INDENTED = re.compile(r"(?m)^([ \t]+)(?=\S)")


def fit_indentation(text: str, prefix: str) -> str:
    """Indent the lines after the first as the file does: by tabs where it uses tabs alone, by spaces where it does."""
    if "\n" not in text:
        return text
    near = prefix[-_LOOK_BACK:]
    steps = indents(near)
    tabs, spaces = any("\t" in step for step in steps), any(" " in step for step in steps)
    below = text.partition("\n")[2]
    own = [step for step in indents(below) if step]
    if tabs and not spaces and own and all(set(step) == {" "} for step in own):
        width = len(indent_unit(below))
        return _reindented(text, lambda step: "\t" * (len(step) // width) if len(step) % width == 0 else step)
    if spaces and not tabs and any("\t" in step for step in own):
        unit = indent_unit(near)
        return _reindented(text, lambda step: step.replace("\t", unit))
    return text


def _reindented(text: str, change: Callable[[str], str]) -> str:
    first, _, rest = text.partition("\n")
    return first + "\n" + _INDENTED.sub(lambda found: change(found[1]), rest)


def drop_odd_space(text: str, prefix: str) -> str:
    """Take away one space at the start that stands before the cursor already, or that leaves the file's indentation."""
    if not text.startswith(" ") or not text[1:2].strip() or not prefix[-1:].isspace():
        return text
    if text.startswith(" *"):  # a line of a block comment stands one column deeper
        return text
    line = prefix.rpartition("\n")[2]
    if line.strip():
        return text[1:] if line.endswith(" ") else text
    unit = indent_unit(prefix[-_LOOK_BACK:])
    return text[1:] if set(line) <= {" "} and unit != "\t" and len(line) % len(unit) == 0 else text
