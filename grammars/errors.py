"""Where a text first stops being the beginning of a program: the parser's true errors.

An ERROR node is the cheapest repair that the parser found, not a diagnosis. A true error is a token at which every
parser version gave up; what stands before it could still have become a valid text (the viable-prefix property of LR
parsing). The parser tells of it only in its log, so it is found by listening there, which costs about 1 ms a
kilobyte: give it a window, such as one function. The log's wording belongs to the pinned tree-sitter version.

Offsets are in bytes. Knows no layout and no cursor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from remask.grammars.language import Grammar
from remask.grammars.lexis import scan, string_left_open
from remask.grammars.source import byte_count, encode

if TYPE_CHECKING:
    from tree_sitter import LogType, Tree

MAX_LOGGED_BYTES = 60_000
"""The largest text whose log is read: about 80 ms."""

_SPACE = re.compile(rb"[ \t\r\n\f\\]*")
_STRING_PREFIX = re.compile(rb"[A-Za-z]{1,2}")
_WORD = re.compile(r"[^\W\d]\w*")
_HEADER = re.compile(r"#[ \t]*include[ \t]*<[^>\n]*\Z")  # of C: open to its bracket, as a string is to its quote
# What a mark at the end may begin beside a longer operator: `.5`, `...`, a pattern, a string, else a name (`#a`).
_BEGUN = {".": ("0", "."), "/": ("_/",), "<": ("_",), '"': ('"',), "'": ("'", "_"), "`": ("`",)}
_NEXT = ("_", ")", "]", "}", ",", ";", "=", ".")  # one of these goes on below most lines
_GROWING = re.compile(r"\d[\w.]*|\.\d\w*|[^\w\s()\[\]{},;]+")  # numbers and operators


LONGEST_STRING_PREFIX = 3  # letters: u8R


@dataclass(frozen=True, slots=True)
class TrueError:
    """A token that no parser version could take; `offset` is its first byte, the text's length at its end."""

    offset: int
    lookahead: str


def true_errors(grammar: Grammar, source: bytes, old: Tree | None = None) -> tuple[TrueError, ...]:
    """All true errors of `source` in order; those after the first depend on how the parser recovered from it.

    Empty exactly where the parser sees no error. `old` is a tree that was edited to fit `source` (see `Gap`): what it
    holds is not parsed again. Raises GrammarError without a parser, and ValueError for more than MAX_LOGGED_BYTES with
    an error in it.
    """
    from tree_sitter import Parser

    parser = Parser(grammar.language)
    known = () if old is None else (old,)
    if not parser.parse(source, *known).root_node.has_error:
        return ()
    if len(source) > MAX_LOGGED_BYTES:
        raise ValueError(f"{len(source)} bytes are too many to locate an error in")
    listener = _Listener()
    parser = Parser(grammar.language, logger=listener)
    parser.parse(source, *known)
    return _located(source, listener.found)


def viable_prefix(grammar: Grammar, text: str) -> bool:
    """Whether `text` can still become a valid one by adding to its end, as far as the parser can tell.

    See `first_break`; raises as `true_errors` does.
    """
    return first_break(grammar, text) is None


Errors = tuple[TrueError, ...]


class Gap:
    """A place between two texts that is filled again and again: what stands around it is parsed once.

    The first true error is that of a fresh parse: in 3,600 true and damaged pieces of bodies in three languages it was
    the same each time, at a third to two thirds of the cost.
    """

    def __init__(self, grammar: Grammar, before: str, after: str = "") -> None:
        self._grammar = grammar
        self._before = before
        self._after = after

    def first_break(self, middle: str) -> int | None:
        """`first_break` of the text before and `middle`, where nothing stands behind the gap. Raises as that does."""
        text = self._before + middle
        return _first_break(self._grammar, text, self.true_errors(middle), lambda more: self.true_errors(middle + more))

    def first_error(self, middle: str) -> int | None:
        """The byte of the first true error of the texts with `middle` between them, or of the line end that causes it.

        Raises as `true_errors` does.
        """
        errors = self.true_errors(middle)
        if not errors:
            return None
        broken = _line_left_open(self._grammar, self._before + middle + self._after, errors[0].offset)
        return errors[0].offset if broken is None else broken

    def true_errors(self, middle: str) -> tuple[TrueError, ...]:
        """`true_errors` of the texts with `middle` between them. Raises as that does."""
        source = encode(self._before + middle + self._after)
        return true_errors(self._grammar, source, self._filled(source, encode(middle)))

    def _filled(self, source: bytes, middle: bytes) -> Tree:
        at, behind = self._start, self._start + len(middle)
        tree = self._tree.copy()
        start = _point(source, at)
        tree.edit(at, at, behind, start, start, _point(source, behind))
        return tree

    @cached_property
    def _start(self) -> int:
        return byte_count(self._before)

    @cached_property
    def _tree(self) -> Tree:
        return self._grammar.parse(encode(self._before + self._after))


def first_break(grammar: Grammar, text: str) -> int | None:
    """Where `text` stops being the beginning of a program: the byte of its first true error, or None.

    An error at the end does not count (a token that may still grow: `i`, `in`), nor does one in a string that
    starts before it and may still be closed, as it may not behind a line end. Raises as `true_errors` does.
    """
    errors = true_errors(grammar, encode(text))
    return _first_break(grammar, text, errors, lambda more: true_errors(grammar, encode(text + more)))


def _first_break(grammar: Grammar, text: str, errors: Errors, after: Callable[[str], Errors]) -> int | None:
    """See `first_break`; `after` gives the errors of the text with something added to its end."""
    if not errors:
        return None
    source, first = encode(text), errors[0].offset
    rest = source[first:].decode("utf-8", "replace")
    broken = _line_left_open(grammar, text, first)
    if (not rest.strip() and broken is None) or _HEADER.search(text):
        return None
    open_at = scan(grammar, text).open_at
    string = byte_count(text[:open_at])
    if open_at >= 0 and (string <= first or _STRING_PREFIX.fullmatch(source, first, string) is not None):
        return None
    grown = (after(more) for more in _growth(grammar, rest))
    if any(not found or found[0].offset != first for found in grown):
        return None
    return first if broken is None else broken


def _line_left_open(grammar: Grammar, text: str, error: int) -> int | None:
    """The byte of the line end that leaves the string open at which, or behind which, the parser sees an error.

    What stands in the string was right: the line may not end there. None where the error is another one.
    """
    at = len(encode(text)[:error].decode("utf-8", "replace"))
    end = string_left_open(grammar, text, at)
    return None if end is None else byte_count(text[:end])


def _growth(grammar: Grammar, rest: str) -> list[str]:
    """What a text at whose end `rest` is wrong may go on with to make it right; nothing where nothing can.

    A word may grow to another name, a keyword, a string with a prefix, an operator to a longer one or a comment. Behind
    the end of a line whose string is not closed there is nothing to grow, only the next token.
    """
    if not rest.strip():
        return [*_NEXT] if grammar.text.offside else [*_NEXT, grammar.text.block_opener]
    if _WORD.fullmatch(rest):
        return ["_", *_longer(grammar, rest, str.isalpha), *(['""'] if len(rest) <= LONGEST_STRING_PREFIX else [])]
    if not _GROWING.fullmatch(rest):
        return []
    if rest[0].isdigit():
        return ["0"]
    comments = (*grammar.text.line_comments, *(opener for opener, _ in grammar.text.block_comments))
    begun = _BEGUN.get(rest[-1], () if rest[-1] in ",;:=" else ("_",))
    return [*begun, *(one[len(rest) :] for one in comments if one.startswith(rest)), *_longer(grammar, rest)]


def _longer(grammar: Grammar, start: str, wanted: Callable[[str], bool] = bool) -> list[str]:
    """What is left of every keyword or operator that begins with `start` and is longer."""
    return [kind[len(start) :] for kind in _kinds(grammar) if kind.startswith(start) and kind != start and wanted(kind)]


@lru_cache(maxsize=32)
def _kinds(grammar: Grammar) -> tuple[str, ...]:
    language = grammar.language
    kinds = (
        language.node_kind_for_id(i) for i in range(language.node_kind_count) if not language.node_kind_is_named(i)
    )
    return tuple(sorted({kind for kind in kinds if kind}))


class _Listener:
    """Collects (row, byte column, lookahead) of every true error from the parser's log."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int, str]] = []
        self._at = (0, 0)
        self._paused: list[tuple[int, int, str]] = []

    def __call__(self, _kind: LogType, message: str) -> None:
        start = message[0]
        if start == "p" and message.startswith("process "):
            row, column = message[message.rfind("row:") + 4 :].split(", col:")
            self._at = (int(row), int(column))
        elif start == "d" and message.startswith("detect_error "):
            self._paused.append((*self._at, message.partition("lookahead:")[2]))
        elif start == "r" and message.startswith("resume ") and self._paused:
            self.found.append(max(self._paused))
            self._paused.clear()


def _point(source: bytes, offset: int) -> tuple[int, int]:
    """Row and byte column of an offset."""
    return source.count(b"\n", 0, offset), offset - source.rfind(b"\n", 0, offset) - 1


def _located(source: bytes, found: list[tuple[int, int, str]]) -> tuple[TrueError, ...]:
    rows = [0]
    rows += [match.end() for match in re.finditer(rb"\n", source)]
    errors: dict[int, str] = {}
    for row, column, lookahead in found:
        space = _SPACE.match(source, min(rows[row] + column, len(source)))
        assert space is not None
        errors.setdefault(len(source) if lookahead == "end" else space.end(), lookahead)
    return tuple(TrueError(offset, errors[offset]) for offset in sorted(errors))
