"""What can be told of a text by its brackets, strings, comments and line ends alone, in one pass.

Works on text that no parser accepts. Knows no nodes and no keywords beyond those in the grammar file.
All offsets are in code points.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from remask.grammars.indentation import indent_of
from remask.grammars.language import Grammar
from remask.grammars.rules import StringRule

TAB = 8  # columns; as CPython counts them

NEAR = 200_000
"""Code points before a cursor that are looked at: more would cost a tenth of a second at each key."""

CLOSER = {"(": ")", "[": "]", "{": "}"}
_STRING_PREFIX = re.compile(r"[ \t\f]*[A-Za-z]{0,2}")


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A logical line that holds code: it ends at the first line end outside brackets, strings and joins."""

    start: int
    end: int  # of its line end, or of the text
    tail: int  # just after its last code character
    indent: int  # columns
    bare: bool  # nothing but one string literal


@dataclass(frozen=True, slots=True)
class Lexis:
    """One scanned text. `stack` holds the open brackets, `anchor` the start of the logical line the text ends in."""

    lines: tuple[CodeLine, ...]
    breaks: tuple[int, ...]  # where logical lines start, those without code included
    stack: tuple[tuple[str, int], ...]
    anchor: int
    open_at: int  # where the string or comment starts that the text ends in, or -1
    depth: int  # the deepest nesting of brackets that occurs

    @property
    def inside(self) -> bool:
        """Whether the text ends within a string or a comment."""
        return self.open_at >= 0


def width(line: str) -> int:
    """The indentation of a line in columns: tabs to the next multiple of 8, a form feed starts again."""
    return len(indent_of(line).expandtabs(TAB))


@lru_cache(maxsize=4)
def scan_prefix(grammar: Grammar, text: str) -> Lexis:
    """`scan`, remembered: the text before a cursor is asked about many times in one request.

    Of a text longer than NEAR, only the end is scanned, from a line at column 0 that looks like a statement's.
    """
    start = 0
    if len(text) > NEAR and (word := _restart(grammar.text.statement_words)):
        found = re.compile(rf"^(?=\S){word.pattern}", re.MULTILINE).search(text, len(text) - NEAR)
        start = found.start() if found else 0
    return scan(grammar, text, start)


def scan(grammar: Grammar, text: str, start: int = 0) -> Lexis:
    """Scan `text` from `start`, which is taken to lie outside any string or bracket. Never raises; linear in time."""
    return _Scanner(grammar, text, start).run()


class _Scanner:
    def __init__(self, grammar: Grammar, text: str, first: int) -> None:
        self.text = text
        self.first = first
        self.offside = grammar.text.offside
        self.lines: list[CodeLine] = []
        self.breaks: list[int] = []
        self.stack: list[tuple[str, int]] = []
        self.depth = 0
        self.tokens = tokens(grammar)
        self.restart = _restart(grammar.text.statement_words)
        self.closed = _closed(grammar)
        self._begin(first)

    def run(self) -> Lexis:
        text, stack = self.text, self.stack
        last: re.Match[str] | None = None
        for match in self.tokens.finditer(text, self.first):
            kind = match.lastgroup
            if kind == "n":
                self._newline(match.start())
            elif kind == "o":
                stack.append((match.group(), match.start()))
                self.depth = max(self.depth, len(stack))
                self.plain = False
            elif kind == "x":
                self.plain = False
                if stack and CLOSER[stack[-1][0]] == match.group():
                    stack.pop()
                elif stack and not self.offside and match.group() == "}":
                    _pop_to_brace(stack)
            elif kind == "s":
                self._string(match.start(), match.end())
                last = match
            elif kind == "c":
                self.comment = match.span()
                last = match
        anchor = self.start
        self._end_line(len(text))
        open_ = last is not None and last.end() == len(text) and not self.closed.fullmatch(last.group())
        open_at = last.start() if last is not None and open_ else -1
        return Lexis(tuple(self.lines), tuple(self.breaks), tuple(stack), anchor, open_at, self.depth)

    def _begin(self, start: int) -> None:
        self.start = start
        self.breaks.append(start)
        self.comment = (0, 0)
        self.strings = 0
        self.string = (0, 0)
        self.plain = True  # no brackets so far

    def _string(self, start: int, end: int) -> None:
        self.strings += 1
        self.string = (start, end)

    def _newline(self, at: int) -> None:
        if self.stack and (self.offside or self.stack[-1][0] != "{"):
            if self.restart is None or not self.restart.match(self.text, at + 1):
                return
            while self.stack and (self.offside or self.stack[-1][0] != "{"):
                self.stack.pop()
        self._end_line(at)
        self._begin(at + 1)

    def _end_line(self, end: int) -> None:
        text, start = self.text, self.start
        stop = self.comment[0] if self.comment[1] > start and not text[self.comment[1] : end].strip() else end
        code = text[start:stop].rstrip()
        if not code or code.isspace():
            return
        tail = start + len(code)
        bare = self.plain and self.strings == 1 and self.string[1] == tail and self._leads(start)
        self.lines.append(CodeLine(start, end, tail, width(code), bare))

    def _leads(self, start: int) -> bool:
        lead = _STRING_PREFIX.match(self.text, start)
        return lead is not None and lead.end() >= self.string[0]


def string_left_open(grammar: Grammar, text: str, at: int) -> int | None:
    """The end of a line that a string before `at` leaves open though it may not run on; None for no such string.

    It is the line of `at`, or the last one above with anything on it. `at` may also be the start of letters that the
    string has before its quote.
    """
    for match in tokens(grammar).finditer(text):
        if match.start() > at and not text[at : match.start()].isalpha():
            break
        end = match.end()
        if match.lastgroup == "s" and text[end : end + 1] == "\n" and (at <= end or not text[end:at].strip()):
            return None if _closed(grammar).fullmatch(match.group()) else end
    return None


def _pop_to_brace(stack: list[tuple[str, int]]) -> None:
    """Close the innermost brace, and with it what was left open inside it."""
    if any(opener == "{" for opener, _ in stack):
        while stack.pop()[0] != "{":
            pass


@lru_cache(maxsize=32)
def tokens(grammar: Grammar) -> re.Pattern[str]:
    """Groups: `s` a string, `c` a comment, `j` a joined line end, `n` a line end, `o` an opener, `x` a closer."""
    rules = grammar.text
    strings = [*rules.skip, *(_literal(rule) + f"(?:{re.escape(rule.close)})?" for rule in rules.strings)]
    comments = [re.escape(mark) + r"[^\n]*" for mark in rules.line_comments]
    comments += [rf"{re.escape(a)}.*?(?:{re.escape(b)}|\Z)" for a, b in rules.block_comments]
    join = rf"|(?P<j>{re.escape(rules.line_join)}\n)" if rules.line_join else ""
    return re.compile(
        rf"(?P<c>{_either(comments)})|(?P<s>{_either(strings)}){join}|(?P<n>\n)|(?P<o>[(\[{{])|(?P<x>[)\]}}])",
        re.DOTALL,
    )


@lru_cache(maxsize=32)
def _closed(grammar: Grammar) -> re.Pattern[str]:
    """Matches a string or block comment that has its end; a line comment never has, being open to more."""
    rules = grammar.text
    whole = [*rules.skip, *(_literal(rule) + re.escape(rule.close) for rule in rules.strings)]
    whole += [rf"{re.escape(a)}.*?{re.escape(b)}" for a, b in rules.block_comments]
    return re.compile(_either(whole), re.DOTALL)


@lru_cache(maxsize=32)
def _restart(words: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile(rf"[ \t]*(?:async[ \t]+)?(?:{'|'.join(map(re.escape, words))})\b") if words else None


def _literal(rule: StringRule) -> str:
    """A string's opener and body up to, and without, its closer."""
    first, rest = re.escape(rule.close[0]), re.escape(rule.close[1:])
    stop = "" if rule.lines else r"\n"
    escape = "" if rule.raw else r"|\\(?:.|\Z)"
    other = rf"|{first}(?!{rest})" if rest else ""
    backslash = "" if rule.raw else r"\\"
    return rf"{re.escape(rule.open)}(?:[^{backslash}{first}{stop}]++{escape}{other})*+"


def _either(patterns: list[str]) -> str:
    return "|".join(patterns) if patterns else r"(?!)"
