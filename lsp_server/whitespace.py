"""Rules about the indentation of a completion. Pure; texts have LF as their only line end.

Each rule mends what is certainly wrong or leaves the text as it is. What a level of indentation is says
grammars/indentation, and grammars/fitting whether the file has tabs.
"""

from __future__ import annotations

from remask.grammars.indentation import indent_unit

_LOOK_BACK = 4_000  # characters of the prefix that show how the file is indented


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
