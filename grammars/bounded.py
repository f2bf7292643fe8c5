"""Parses and queries that end: a broken text can make either take time with the square of its length.

Time is the thread's own, so that a busy machine changes nothing. Knows trees and grammars, not what they are for. Both
hold the interpreter all the while: who asks them for a whole document holds up everybody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from remask.grammars.language import Grammar, GrammarError

if TYPE_CHECKING:
    from tree_sitter import Node, Query, Tree

PARSE_WITHIN_S = 0.5
"""The longest parse; a sound text of 100 KB takes about 0.15 s."""

QUERY_WITHIN_S = 0.02
"""The longest look around one place; in a sound text it takes less than a millisecond."""

_CHUNK = 65_536  # bytes that the parser is given at once

clock = time.thread_time


def parse_bounded(grammar: Grammar, source: bytes) -> Tree:
    """Parse UTF-8 bytes afresh. Raises GrammarError where that takes too long or the parser cannot be loaded."""
    from tree_sitter import Parser

    is_up = _alarm(PARSE_WITHIN_S)
    try:
        return Parser(grammar.language).parse(
            lambda at, _: source[at : at + _CHUNK],
            progress_callback=lambda *_: is_up(),
        )
    except ValueError:  # so the parser says that it was stopped
        raise GrammarError(f"The text takes longer than {PARSE_WITHIN_S} s to parse.") from None


def matches_at(query: Query, root: Node, start: int, end: int) -> list[dict[str, list[Node]]]:
    """The captures of each match that meets these bytes; none at all where the look takes too long."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query)
    cursor.set_byte_range(start, end)
    is_up = _alarm(QUERY_WITHIN_S)
    stopped = False

    def progress(*_: object) -> bool:
        nonlocal stopped
        stopped = stopped or is_up()
        return stopped

    found = [captures for _, captures in cursor.matches(root, lambda *_: True, progress)]
    return [] if stopped else found


def _alarm(within_s: float) -> Callable[[], bool]:
    """Tells whether the time is up that begins now."""
    ends = clock() + within_s
    return lambda: clock() >= ends
