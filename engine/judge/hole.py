"""A cursor in a window that does not parse, with or without the draft: what can fairly be asked of the draft there.

Knows no file beyond the window. Offsets are in code points unless a name says bytes.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cached_property

from remask.engine.judge.compilers import parses
from remask.engine.judge.overlap import CLOSERS
from remask.engine.judge.statements import wrong_line
from remask.engine.judge.window import Window
from remask.grammars.blocks import ends_open, opens_block
from remask.grammars.errors import MAX_LOGGED_BYTES, true_errors, viable_prefix
from remask.grammars.language import Grammar
from remask.grammars.lexis import CLOSER, scan, tokens
from remask.grammars.source import byte_count, encode

_WORD_AT_END = re.compile(rb"\w+\Z")
FILLS = ("_", " _", ", _", "_: _")
"""What may stand in a hole: a name, one more name, two that a colon joins (a pair, the two sides of a choice)."""

_WORD = re.compile(r"\w")


class Hole:
    """What stands around the cursor, analysed once for all drafts that are broken there."""

    def __init__(self, grammar: Grammar, window: Window) -> None:
        self.grammar = grammar
        self.window = window
        self._above = window.head + window.prefix
        self._lexis = scan(grammar, self._above)
        self._line = self._above[self._lexis.anchor :]  # the logical line of the cursor, up to it

    @cached_property
    def whole_otherwise(self) -> bool:
        """Whether the window parses with some finished statement, or the brackets that are missing, at the cursor."""
        texts = [self._without_statement(neutral) for neutral in self.grammar.gate.neutral]
        missing = self._missing_closers()
        if missing:
            texts += [self.window.text(filler + missing + comma) for filler in ("", "_") for comma in ("", ",")]
        return any(parses(self.grammar, text) for text in texts)

    def _missing_closers(self) -> str:
        """What closes the brackets that are open at the cursor and that the rest of its statement does not close."""
        open_above = scan(self.grammar, self._line).stack
        below = _unmatched(self.grammar, self._statement_with("")[len(self._line) :])[1]
        return "".join(CLOSER[opener] for opener, _ in reversed(open_above[below:]))

    def with_ending(self, draft: str) -> str | None:
        """The draft with the ending that lets the window parse, else the first; None without a header at its end."""
        kept = draft.rstrip()
        text = self._above + kept
        lexis = scan(self.grammar, text)
        if self.window.rest.strip() or not lexis.lines:
            return None
        last = text[lexis.lines[-1].start :]
        code = last.lstrip(" \t\f")
        if not ends_open(self.grammar, text, lexis) and not code.startswith(self.grammar.gate.leading):
            return None
        if not self.grammar.text.offside and _unmatched(self.grammar, draft)[0] != 1:
            return None
        indent = last[: len(last) - len(code)]
        filled = [kept + ending.replace("{indent}", indent) for ending in self.grammar.gate.endings]
        return next((f for f in filled if parses(self.grammar, self.window.text(f))), filled[0])

    @cached_property
    def with_bodies(self) -> list[Hole]:
        """The hole with each body that a header may lack whose end stands behind the cursor; empty for no such header.

        An editor that closes brackets by itself puts `)` or `):` there long before a body is written. Where closing
        marks alone follow, what opens the body may be missing too.
        """
        rest = self.window.rest.rstrip()
        code = self._line.lstrip(" \t\f")
        indent = self._line[: len(self._line) - len(code)]
        bodies = [ending.replace("{indent}", indent) for ending in self.grammar.gate.endings]
        lines = scan(self.grammar, rest).lines
        if lines and opens_block(self.grammar, rest, lines[-1]):
            heads = [rest + body for body in bodies]
        elif rest and set(rest) <= CLOSERS:
            heads = [f"{rest} {self.grammar.text.block_opener}{body}" for body in ("", *bodies)]
        else:
            return []
        below = self.window.suffix[len(self.window.rest) :]
        windows = [replace(self.window, suffix=head + below) for head in heads]
        return [Hole(self.grammar, window) for window in windows]

    def leaves_open(self, draft: str) -> bool:
        """Whether more brackets or strings stay open at the end of the statement with the draft than without it."""
        text = self._line + draft + self.window.rest
        for end in ("", "\n"):  # a string that must close on its line, one that may run on
            open_at = scan(self.grammar, text + end).open_at
            if open_at >= 0 and not self._is_comment(text, open_at):
                return True
        if not self.grammar.text.offside:
            after, before = (_unmatched(self.grammar, self.window.text(d))[0] for d in (draft, ""))
            return after > before
        with_draft = scan(self.grammar, self._statement_with(draft)).stack
        return len(with_draft) > len(scan(self.grammar, self._statement_with("")).stack)

    def goes_on_with_list(self, draft: str) -> bool:
        """Whether the draft is part of a line in brackets that were opened on a line above and that nothing closes."""
        stack = scan(self.grammar, self._line + draft).stack
        row = self._line.rfind("\n") + 1
        if not stack or any(at >= row for _, at in stack) or "\n" in draft or self.window.rest.strip():
            return False
        return not _unmatched(self.grammar, self._statement_with("")[len(self._line) :])[1]

    def holds_alone(self, draft: str) -> bool:
        """Whether the cursor's line is in order by itself, in a text that is broken above it so that no parse helps."""
        return bool(self.grammar.gate.compiler) and not self._above_viable and self.row_holds(draft)

    def row_holds(self, draft: str) -> bool:
        """Whether the cursor's line is a whole statement by itself, or the header of one."""
        row = self._line[self._line.rfind("\n") + 1 :]
        text = row + draft + self.window.rest
        if not self.grammar.gate.compiler:
            return parses(self.grammar, text)
        return not wrong_line(self.grammar, text, len(row), len(row) + len(draft))

    @cached_property
    def in_string(self) -> bool:
        """Whether the cursor stands in a string or comment that a line end does not close."""
        return self._lexis.open_at >= 0 and self._open_string("") >= 0

    def stays_in_string(self, draft: str) -> bool:
        """Whether the draft only adds to what is in that string."""
        return self._open_string(draft) == self._open_string("")

    @cached_property
    def comment_is_closed(self) -> bool:
        """Whether it is a comment that ends below. A string's end may be the next one's start."""
        at = self._open_string("")
        openers = tuple(opener for opener, _ in self.grammar.text.block_comments)
        return self._line.startswith(openers, at) and scan(self.grammar, self._line + self.window.suffix).open_at != at

    def _open_string(self, draft: str) -> int:
        return scan(self.grammar, f"{self._line}{draft}\n").open_at

    def ends_with_quote(self, draft: str) -> bool:
        """Whether the draft ends with a part of what closes a string."""
        closers = [rule.close for rule in self.grammar.text.strings]
        return any(draft.endswith(closer[:1]) for closer in closers)

    def viable(self, draft: str) -> bool:
        """Whether the window up to the draft's end can still become a program; False where it is too large to say."""
        try:
            return viable_prefix(self.grammar, self._above + draft)
        except ValueError:
            return False

    def fails_later(self, draft: str) -> bool:
        """Whether an error further down has nothing to do with the draft: the parser gets at least as far with it.

        On the cursor's line it may not stop at once, and has to stop where it does without the draft or, if that is
        further on, with a fill; in a line in brackets that goes on below, it has to get further than without.
        """
        on_line = bool(self.window.rest.strip())
        goes_on = bool(self._lexis.stack) and not scan(self.grammar, self._statement_with("")).stack
        if not on_line and not (goes_on and self._end_below(draft) == self._end_below("")):
            return False
        before, after = self._first_error_below(""), self._first_error_below(draft)
        if before is None or after is None:
            return False
        first_token = self._first_token
        if on_line:
            return first_token < after == max(before, self._reach)
        return after > max(before, first_token)

    @cached_property
    def _first_token(self) -> int:
        return byte_count(self.window.suffix) - byte_count(self.window.suffix.lstrip())

    @cached_property
    def _reach(self) -> float:
        """The furthest first error below the cursor, as bytes into the suffix, that a simple fill leaves there."""
        found = (self._errors(fill) for fill in FILLS)
        return max((below[0] if below else math.inf for inside, below in found if not inside), default=-1)

    def only_comments(self, draft: str) -> bool:
        """Whether the draft is a comment, or part of one, on a line that nothing else follows on."""
        text = self._line + draft
        start = scan(self.grammar, text).open_at
        if start < 0 or "\n" in draft or self.window.rest.strip() or not self._is_comment(text, start):
            return False
        return not text[min(len(self._line), start) : start].strip()

    def _is_comment(self, text: str, start: int) -> bool:
        return text.startswith(self.grammar.text.line_comments, start)

    def local_objection(self, draft: str) -> str:
        """The objection to a draft where the window is broken elsewhere too: only what the draft touches counts."""
        filled = self.with_ending(draft) or draft
        start = len(self._above)
        wrong = wrong_line(self.grammar, self.window.text(filled), start, start + len(draft))
        if wrong:
            return wrong
        if self.grammar.gate.compiler and not self._above_viable:
            return ""  # the parser has lost its way above: its errors below say nothing, and the lines hold
        try:
            if self.window.rest.strip() and self._stops_at_once(draft):
                return "a syntax error right after it"
            inside, below = self._errors(filled)
            if inside:
                return "a syntax error in it"
            known = set(self._errors("")[1]) | self._errors_otherwise
        except ValueError:
            return "too large a function around it to be judged"
        return "" if set(below) <= known else "a syntax error right after it"

    def _stops_at_once(self, draft: str) -> bool:
        """Whether the text behind the cursor cannot follow on the draft, and could on another."""
        below = self._errors(draft)[1]
        return self._first_token in below and self._reach > self._first_token

    @cached_property
    def _above_viable(self) -> bool:
        return self.viable("")

    def _first_error_below(self, draft: str) -> int | None:
        """Bytes from the cursor's suffix to the first true error; None where that lies before it, or there is none."""
        try:
            inside, below = self._errors(draft)
        except ValueError:
            return None
        return below[0] if below and not inside and self._above_viable else None

    def _errors(self, draft: str) -> tuple[list[int], list[int]]:
        """True errors inside the draft, and below it as bytes into the suffix; those above are not the draft's."""
        start, end = byte_count(self._above), byte_count(self._above + draft)
        source = encode(self.window.text(draft))
        errors = [error.offset for error in true_errors(self.grammar, source)]
        word = _WORD_AT_END.search(encode(self._above)) if _WORD.match(draft) else None
        touched = word.start() if word else start
        return [at for at in errors if touched <= at < end], [at - end for at in errors if at >= end]

    @cached_property
    def _errors_otherwise(self) -> set[int]:
        """True errors below the cursor, as bytes into the suffix, that a finished statement would leave there."""
        errors: set[int] = set()
        for neutral in self.grammar.gate.neutral[:2]:
            source = encode(self._without_statement(neutral))
            shift = len(source) - byte_count(self.window.suffix + self.window.foot)
            if len(source) <= MAX_LOGGED_BYTES:
                errors.update(error.offset - shift for error in true_errors(self.grammar, source))
        return errors

    def _without_statement(self, neutral: str) -> str:
        """The window with `neutral` in place of the logical line at the cursor."""
        code = self._line.lstrip(" \t\f")
        indent = self._line[: len(self._line) - len(code)]
        statement = self._statement_with("")
        closed = not scan(self.grammar, statement).stack
        below = self.window.suffix[len(statement) - len(self._line) if closed else len(self.window.rest) :]
        return f"{self._above[: self._lexis.anchor]}{indent}{neutral}{below}{self.window.foot}"

    def _end_below(self, draft: str) -> int:
        """Where in the suffix the logical line at the draft's end finds its own end."""
        text = self._line + draft + self.window.suffix
        end = len(self._line) + len(draft)
        return next((line.end - end for line in scan(self.grammar, text).lines if line.start <= end <= line.end), 0)

    def _statement_with(self, draft: str) -> str:
        """The logical line at the draft's end, from its start to the end it finds below."""
        text = self._line + draft + self.window.suffix
        end = len(self._line) + len(draft)
        for line in scan(self.grammar, text).lines:
            if line.start <= end <= line.end:
                return text[line.start : line.end]
        return text[: end + len(self.window.rest)]


def _unmatched(grammar: Grammar, text: str) -> tuple[int, int]:
    """The number of brackets that `text` opens and does not close, and closes and did not open."""
    depth = lowest = 0
    for match in tokens(grammar).finditer(text):
        depth += {"o": 1, "x": -1}.get(match.lastgroup or "", 0)
        lowest = min(lowest, depth)
    return depth - lowest, -lowest
