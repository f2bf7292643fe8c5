"""Rules about what a completion says twice, or says again. Pure; texts have LF as their only line end.

Each rule mends what is certainly wrong or leaves the text as it is.
"""

from __future__ import annotations

import re

_WORD_END = re.compile(r"[^\W\d]\w*\Z")
_WORD_START = re.compile(r"[^\W\d]\w*")
MIN_DOUBLED = 3  # letters of a word that is doubled
MAX_BLOCK = 4  # lines of a block that is repeated


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
