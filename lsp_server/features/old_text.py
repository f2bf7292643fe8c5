"""What the next hole may well hold: text that was just deleted there, or what is left of a ghost text typed over.

A hint for the engine, which checks it. Only the last place that was completed is remembered. Knows texts only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from remask.contract.messages import MAX_DRAFT_CHARACTERS
from remask.lsp_server.context import Place

MOST_TYPED = 200  # characters since the last request; more is another place
MOST_SKIPPED = 80  # characters of the ghost text that typing may have replaced
LEAST_ALIKE = 2  # characters typed that are found again in it
_WORD = re.compile(r"\w*")


@dataclass(frozen=True, slots=True)
class _Last:
    key: str
    prefix: str
    suffix: str
    text: str


class OldText:
    """Remembers the last place, and what was written there."""

    def __init__(self) -> None:
        self._last: _Last | None = None

    def remember(self, place: Place, text: str) -> None:
        """A text, perhaps an empty one, was written for a place."""
        self._last = _Last(place.key, place.prefix, place.suffix, text)

    def draft(self, place: Place) -> str:
        """What may stand at a place; "" where nothing is known."""
        last = self._last
        if last is None or last.key != place.key or place.selected is not None:
            return ""
        return _draft(last, place.prefix, place.suffix)[:MAX_DRAFT_CHARACTERS]


def _draft(last: _Last, prefix: str, suffix: str) -> str:
    if last.prefix.startswith(prefix) and last.suffix.endswith(suffix):
        before, after = last.prefix[len(prefix) :], last.suffix[: len(last.suffix) - len(suffix)]
        return before + (after or last.text)  # what was deleted; where that ended at the cursor, the ghost text follows
    typed = prefix[len(last.prefix) :]
    closed = len(suffix) - len(last.suffix)  # characters that the editor put behind the cursor
    if not prefix.startswith(last.prefix) or not suffix.endswith(last.suffix) or closed > len(typed):
        return ""
    return left_of(last.text, typed) if len(typed) <= MOST_TYPED else ""


def left_of(text: str, typed: str) -> str:
    """What of a text may follow where something else was typed over its start.

    The text goes on behind the place where the end of what was typed stands in it again; where it does not, behind the
    word that was replaced.
    """
    same = next((i for i, (a, b) in enumerate(zip(text, typed, strict=False)) if a != b), min(len(text), len(typed)))
    if same == len(typed):
        return text[same:]
    rest, other = text[same:], typed[same:]
    for length in range(min(len(other), MOST_SKIPPED), LEAST_ALIKE - 1, -1):
        at = rest[:MOST_SKIPPED].find(other[-length:])
        if at >= 0:
            return rest[at + length :]
    word = _WORD.match(rest)
    return rest[word.end() :] if word is not None and other[-1:].isidentifier() else ""
