"""Parses and queries that end: a broken text can make either take time with the square of its length.

Time is the thread's own, so that a busy machine changes nothing. Knows trees and grammars, not what they are for. Both
hold the interpreter all the while: who asks them for a whole document holds up everybody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
    """The captures of each match whose pattern begins at a node that holds the byte `start` or the last before `end`.

    None at all where the look takes too long. The nodes are found by descending and each is queried by itself: a query
    of the whole tree takes time with the square of a node's children, and asking it to stop crashes the interpreter
    (`progress_callback` of py-tree-sitter 0.26.1's QueryCursor).
    """
    from tree_sitter import QueryCursor

    is_up = _alarm(QUERY_WITHIN_S)
    nodes = {node.id: node for at in (start, max(start, end - 1)) for node in _holding(root, at, is_up)}
    found: list[dict[str, list[Node]]] = []
    for node in nodes.values():
        cursor = QueryCursor(query)
        cursor.set_max_start_depth(0)
        found += [captures for _, captures in cursor.matches(node)]
        if is_up():
            return []
    return found


def _holding(root: Node, at: int, is_up: Callable[[], bool]) -> Iterator[Node]:
    """The nodes that hold the byte, or begin behind it where nothing does, from the root down."""
    cursor = root.walk()
    yield root
    while not is_up() and cursor.goto_first_child_for_byte(at) is not None:
        if cursor.node is not None:
            yield cursor.node


def _alarm(within_s: float) -> Callable[[], bool]:
    """Tells whether the time is up that begins now."""
    ends = clock() + within_s
    return lambda: clock() >= ends
