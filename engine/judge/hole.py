"""A cursor in a window that does not parse, with or without the draft: what can fairly be asked of the draft there.

Knows no file beyond the window. Offsets are in code points unless a name says bytes.
"""

from __future__ import annotations

import re
from functools import cached_property

from remask.engine.judge.compilers import parses
from remask.engine.judge.statements import wrong_line
from remask.engine.judge.window import Window
from remask.grammars.blocks import ends_open
from remask.grammars.errors import MAX_LOGGED_BYTES, true_errors, viable_prefix
from remask.grammars.language import Grammar
from remask.grammars.lexis import scan, tokens
from remask.grammars.source import encode

_WORD_AT_END = re.compile(rb"\w+\Z")
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
        """Whether the window parses with some finished statement in place of the one at the cursor."""
        return any(parses(self.grammar, self._without_statement(neutral)) for neutral in self.grammar.gate.neutral)

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
        indent = last[: len(last) - len(code)]
        filled = [kept + ending.replace("{indent}", indent) for ending in self.grammar.gate.endings]
        return next((f for f in filled if parses(self.grammar, self.window.text(f))), filled[0])

    def leaves_open(self, draft: str) -> bool:
        """Whether a bracket or string that the draft opens is closed neither by it nor by the rest of the line."""
        start = len(self._line)
        lexis = scan(self.grammar, f"{self._line}{draft}{self.window.rest}\n")
        opened = [at for _, at in lexis.stack if start <= at < start + len(draft)]
        return bool(opened) or start <= lexis.open_at < start + len(draft)

    def ends_with_item(self, draft: str) -> bool:
        """Whether the draft ends with the comma of an item, in a list that was begun above and that nothing closes."""
        lexis = scan(self.grammar, self._line + draft)
        row = self._line.rfind("\n") + 1
        listed = bool(lexis.stack) and all(at < row for _, at in lexis.stack)
        if not listed or "\n" in draft or not draft.rstrip().endswith(",") or self.window.rest.strip():
            return False
        return not _closes_more(self.grammar, self._statement[len(self._line) :])

    @cached_property
    def in_string(self) -> bool:
        """Whether the cursor stands in a string or comment that a line end does not close."""
        return self._lexis.open_at >= 0 and self._open_string("") >= 0

    def stays_in_string(self, draft: str) -> bool:
        """Whether the draft only adds to what is in that string."""
        return self._open_string(draft) == self._open_string("")

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

    def same_error_after(self, draft: str) -> bool:
        """Whether what follows on the line is taken as far with the draft as without, beyond its first token."""
        rest = self.window.rest
        if not rest.strip():
            return False
        first_token = len(encode(rest)) - len(encode(rest.lstrip()))
        before, after = self._first_error_below(""), self._first_error_below(draft)
        return before is not None and before == after and before > first_token

    def local_objection(self, draft: str) -> str:
        """The objection to a draft where the window is broken elsewhere too: only what the draft touches counts."""
        filled = self.with_ending(draft) or draft
        start = len(self._above)
        wrong = wrong_line(self.grammar, self.window.text(filled), start, start + len(draft))
        if wrong:
            return wrong
        strict = not self.grammar.gate.compiler
        if not strict and not self._above_viable:
            return ""  # the parser has lost its way above: its errors below say nothing, and the lines hold
        try:
            inside, below = self._errors(filled)
            if inside:
                return "a syntax error in it"
            known = set(self._errors("")[1]) | self._errors_otherwise
        except ValueError:
            return "too large a function around it to be judged"
        return "" if set(below) <= known else "a syntax error right after it"

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
        start, end = len(encode(self._above)), len(encode(self._above + draft))
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
            shift = len(source) - len(encode(self.window.suffix + self.window.foot))
            if len(source) <= MAX_LOGGED_BYTES:
                errors.update(error.offset - shift for error in true_errors(self.grammar, source))
        return errors

    def _without_statement(self, neutral: str) -> str:
        """The window with `neutral` in place of the logical line at the cursor."""
        code = self._line.lstrip(" \t\f")
        indent = self._line[: len(self._line) - len(code)]
        below = self.window.suffix[len(self._statement) - len(self._line) :]
        return f"{self._above[: self._lexis.anchor]}{indent}{neutral}{below}{self.window.foot}"

    @cached_property
    def _statement(self) -> str:
        """The logical line at the cursor as it is without a draft."""
        text = self._line + self.window.suffix
        cursor = len(self._line)
        found = [line.end for line in scan(self.grammar, text).lines if line.start <= cursor <= line.end]
        return text[: found[0] if found else cursor + len(self.window.rest)]


def _closes_more(grammar: Grammar, text: str) -> bool:
    """Whether `text` has a closing bracket without an opener of its own."""
    depth = 0
    for match in tokens(grammar).finditer(text):
        depth += {"o": 1, "x": -1}.get(match.lastgroup or "", 0)
        if depth < 0:
            return True
    return False
