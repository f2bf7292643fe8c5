"""Trims what must not be shown: what stands after the cursor already, and what editors draw badly. Pure functions.

Knows text only. Each rule takes away a whole, exact repetition or nothing: a rule that guesses trims useful text.
All texts have LF as their only line end.
"""

from __future__ import annotations

import itertools

from remask.contract.messages import Reason
from remask.grammars.fitting import Fitting
from remask.lsp_server.repetition import drop_doubled_word, drop_lines_above, drop_repetition
from remask.lsp_server.whitespace import drop_odd_space

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
_TRAILERS = frozenset(")]}\"'`;,:")
_LOOK_BACK = 2_000  # characters of the prefix in which open brackets are looked for
_MAX_TRAILERS = 32  # of those that stand after the cursor; each is a look at the whole text
_OPENS_MORE = (":", "(", "[", "{", ",", "\\", "=")


def tidy(text: str, prefix: str, suffix: str) -> tuple[str, Reason | None]:
    """What is left of a completion between `prefix` and `suffix`, and why nothing is if nothing is."""
    if not text.strip():
        return "", Reason.EMPTY
    text = drop_doubled_word(drop_odd_space(text, prefix), prefix)
    text = Fitting(prefix, suffix).fit(drop_present_indentation(text, prefix))
    text = drop_lines_above(drop_repetition(text), prefix)
    text = drop_overlap(text, prefix, suffix)
    text = drop_repeated_lines(text, prefix, suffix)
    if not text.strip():
        return "", Reason.DUPLICATE
    text = drop_trailing_newlines(text, suffix)
    return (text, None) if text else ("", Reason.EMPTY)


def drop_present_indentation(text: str, prefix: str) -> str:
    """On a line of white space only, take away the indentation that the text brings a second time.

    After a line that opens a block or goes on, deeper indentation is meant.
    """
    above, _, line = prefix.rpartition("\n")
    if not line or line.strip() or not text.startswith(line):
        return text
    previous = next((row for row in reversed(above[-_LOOK_BACK:].split("\n")) if row.strip()), "")
    same_depth = previous[: len(previous) - len(previous.lstrip())] == line
    goes_on = previous.rstrip().endswith(_OPENS_MORE)
    return text[len(line) :] if same_depth and not goes_on else text


def drop_overlap(text: str, prefix: str, suffix: str) -> str:
    """Take away the end of the text where it repeats what follows the cursor on its line.

    Closing characters go only if they would close what nothing opened; the whole rest of a line goes if a word does
    not get cut by it.
    """
    rest = _first_line(suffix).rstrip()
    if not rest.strip():
        return text
    shown = text.rstrip()
    if shown.endswith(rest) and _may_drop(shown[: -len(rest)], rest, rest, prefix):
        return shown[: -len(rest)]
    trailers = "".join(itertools.takewhile(_TRAILERS.__contains__, rest[:_MAX_TRAILERS]))
    near = rest[:_LOOK_BACK]
    for length in range(min(len(trailers), len(rest) - 1, len(shown)), 0, -1):
        overlap = rest[:length]
        if shown.endswith(overlap) and _may_drop(shown[:-length], overlap, near, prefix):
            return shown[:-length]
    return text


def _may_drop(head: str, overlap: str, rest: str, prefix: str) -> bool:
    whole = overlap == rest
    if not whole and not set(overlap) <= _TRAILERS:
        return False
    if whole and overlap == ";":
        return True  # two of them mean nothing
    before, after = surplus(prefix, head + overlap + rest), surplus(prefix, head + rest)
    if after < before:
        return True
    plain = not set(overlap) & set("()[]{}\"'`")
    return whole and plain and len(overlap.strip()) >= 3 and not _cuts_word(head, overlap)


def _cuts_word(head: str, tail: str) -> bool:
    return bool(head) and _in_word(head[-1]) and _in_word(tail[0])


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def surplus(prefix: str, text: str) -> int:
    """How many closing brackets and quotes of `text` close nothing that `prefix` and `text` opened."""
    opened: list[str] = []
    for character in prefix[-_LOOK_BACK:]:
        if character in CLOSER_OF:
            opened.append(CLOSER_OF[character])
        elif opened and character == opened[-1]:
            opened.pop()
    too_many = 0
    for character in text:
        if character in CLOSER_OF:
            opened.append(CLOSER_OF[character])
        elif character in ")]}":
            if opened and character == opened[-1]:
                opened.pop()
            else:
                too_many += 1
    last_line = (prefix.rpartition("\n")[2] + text).rpartition("\n")[2]
    return too_many + sum(last_line.count(quote) % 2 for quote in "\"'`")


def drop_repeated_lines(text: str, prefix: str, suffix: str) -> str:
    """Take away whole lines at the end of the text that stand below the cursor already.

    Only where the cursor's line ends with the cursor. Rows of data (lines that end with a comma) may repeat.
    """
    if _first_line(suffix).strip():
        return text
    following = [line.rstrip() for line in suffix.split("\n")[1:] if line.strip()]
    lines = (prefix.rpartition("\n")[2] + text.rstrip()).split("\n")
    kept = len(lines)
    for count in range(min(len(lines), len(following)), 0, -1):
        ours = [line.rstrip() for line in lines[-count:]]
        if ours == following[:count] and _is_repetition(lines, count, prefix, following):
            kept -= count
            break
    if kept == len(lines):
        return text
    kept_text = "\n".join(lines[:kept])
    return kept_text[len(prefix.rpartition("\n")[2]) :]


def _is_repetition(lines: list[str], count: int, prefix: str, following: list[str]) -> bool:
    ours = [line.strip() for line in lines[-count:]]
    if not all(set(line) <= _TRAILERS for line in ours):
        return not any(line.endswith(",") for line in ours)
    above = prefix.rpartition("\n")[0]
    closers = list(itertools.takewhile(lambda line: set(line.strip()) <= _TRAILERS, following))
    with_ours, without = [*lines, *closers], [*lines[:-count], *closers]
    return surplus(above, "\n".join(with_ours)) > surplus(above, "\n".join(without))


def drop_trailing_newlines(text: str, suffix: str) -> str:
    """End the text with its last line that holds something.

    Before other text on the line a trailing line break has a meaning, and without one the text has none: it goes whole
    if it ends with the break, and stays if indentation follows it.
    """
    if _first_line(suffix).strip():
        return "" if text.endswith("\n") else text
    lines = text.split("\n")
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
