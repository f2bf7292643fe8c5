"""Rules about white space and repetition in a completion. Pure; texts have LF as their only line end.

Each rule mends what is certainly wrong or leaves the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LOOK_BACK = 4_000  # characters of the prefix that show how the file is indented
_INDENTED = re.compile(r"(?m)^([ \t]+)(?=\S)")
_WORD_END = re.compile(r"[^\W\d]\w*\Z")
_WORD_START = re.compile(r"[^\W\d]\w*")
MIN_DOUBLED = 3  # letters of a word that is doubled
MAX_BLOCK = 4  # lines of a block that is repeated


def fit_indentation(text: str, prefix: str) -> str:
    """Indent the lines after the first as the file does: by tabs where it uses tabs alone, by spaces where it does."""
    if "\n" not in text:
        return text
    steps = _INDENTED.findall(prefix[-_LOOK_BACK:])
    tabs, spaces = sum("\t" in step for step in steps), sum(" " in step for step in steps)
    own = _INDENTED.findall(text.partition("\n")[2])
    if tabs and not spaces and own and all(set(step) == {" "} for step in own):
        unit = min(len(step) for step in own)
        return _reindented(text, lambda step: "\t" * (len(step) // unit) if len(step) % unit == 0 else step)
    if spaces and not tabs and any("\t" in step for step in own):
        unit = min((len(step) for step in steps if len(step) > 1), default=4)
        return _reindented(text, lambda step: step.replace("\t", " " * unit))
    return text


def _reindented(text: str, change: Callable[[str], str]) -> str:
    first, _, rest = text.partition("\n")
    return first + "\n" + _INDENTED.sub(lambda found: change(found[1]), rest)


def drop_odd_space(text: str, prefix: str) -> str:
    """Take away one space at the start that stands before the cursor already, or that leaves the file's indentation."""
    if not text.startswith(" ") or not text[1:2].strip() or not prefix[-1:].isspace():
        return text
    line = prefix.rpartition("\n")[2]
    if line.strip():
        return text[1:] if line.endswith(" ") else text
    unit = min((len(step) for step in _INDENTED.findall(prefix[-_LOOK_BACK:]) if len(step) > 1), default=4)
    return text[1:] if set(line) <= {" "} and len(line) % unit == 0 and unit > 1 else text


def drop_doubled_word(text: str, prefix: str) -> str:
    """Take away the beginning of the text where it writes the word before the cursor again and goes on with it."""
    begun, whole = _WORD_END.search(prefix[-200:]), _WORD_START.match(text)
    if begun is None or whole is None or len(begun[0]) < MIN_DOUBLED:
        return text
    return text[len(begun[0]) :] if whole[0].startswith(begun[0]) and len(text) > len(begun[0]) else text


def drop_repetition(text: str) -> str:
    """Cut the text where it begins to say the same again and again: three times, line by line or block by block.

    Rows of data, whose lines end with a comma, may repeat.
    """
    lines = text.split("\n")
    for size in range(1, MAX_BLOCK + 1):
        for start in range(len(lines) - 3 * size + 1):
            block = lines[start : start + size]
            if _says_something(block) and block * 3 == lines[start : start + 3 * size]:
                return "\n".join(lines[: start + size])
    return text


def drop_lines_above(text: str, prefix: str) -> str:
    """Drop a text of two lines or more that only writes again what stands right above the cursor."""
    lines = text.rstrip().split("\n")
    above, _, line = prefix.rpartition("\n")
    if len(lines) < 2 or line.strip():
        return text
    lines[0] = line + lines[0]
    same = [one.rstrip() for one in above.split("\n")[-len(lines) :]] == [one.rstrip() for one in lines]
    return "" if same and _says_something(lines) else text


def _says_something(lines: list[str]) -> bool:
    return any(any(c.isalnum() for c in line) for line in lines) and not any(
        line.rstrip().endswith(",") for line in lines
    )
