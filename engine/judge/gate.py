"""The end gate: what is shown may not add a syntax error that the file did not have.

A draft holds if the whole file parses with it. If the file parsed without it, nothing else will do. Else the file is
being written, and the draft is judged in a window (see window): there it must parse, or the window must have been
broken apart from the statement at the cursor, or the draft must end where a file in the making may end: with a
header whose body is still to come, its end in the draft or behind the cursor, or an item of a list that was open
before. docs/grammars.md has the reasons.

Knows text, never tokens or the model. Offsets are in code points unless a name says bytes.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cached_property

from remask.contract.messages import Reason
from remask.engine.judge.compilers import parses
from remask.engine.judge.cuts import cut_points, longest
from remask.engine.judge.hole import Hole
from remask.engine.judge.window import Window, window
from remask.grammars.language import Grammar
from remask.grammars.lexis import scan, scan_prefix

MAX_WHOLE = 200_000
"""Code points up to which a file is parsed whole; in a larger one only the window is judged."""

MAX_DEPTH = 150
"""Brackets that may nest; a deeper text is refused, since parsers take quadratic time or give up there."""

_FOREIGN = re.compile("[\x00\ud800-\udfff]")
_ENDS = (",", ";", "{", "}")
ADDED = "a syntax error that the file did not have"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What of a draft may be shown. `reason` is None for all of it, CUT for a part, SYNTAX or DEADLINE for nothing."""

    text: str
    reason: Reason | None
    detail: str  # one sentence for the log
    milliseconds: float


class Gate:
    """Judges the drafts for one hole. Raises GrammarError, when made, if the grammar's parser cannot be used."""

    def __init__(self, grammar: Grammar, prefix: str, suffix: str, *, deadline_ms: float = 1_000) -> None:
        self.grammar = grammar
        self.prefix = prefix
        self.suffix = suffix
        self.deadline_ms = deadline_ms
        self._known: dict[str, str] = {}
        _ = grammar.language

    def check(self, draft: str, *, stopped: bool = False) -> Verdict:
        """The longest part of `draft` from its start that may be shown. Never raises for a text.

        `stopped`: the draft ends where it does because its time was up, so where no parse tells that it is whole there,
        it has to end with a mark that ends something.
        Cutting back stops at the deadline, which is looked at between parses: nothing is shown then.
        """
        start = time.perf_counter()
        why = self._objection(draft, stopped=stopped)
        if not why:
            return Verdict(draft, None, "The draft holds.", _since(start))
        marks = "" if not stopped else "," if self.grammar.text.offside else ",;"
        points = cut_points(self.grammar, self.prefix, draft, marks)
        kept = longest(
            points,
            lambda end: (
                _since(start) < self.deadline_ms and not self._objection(draft[:end], cut=not stopped, stopped=stopped)
            ),
        )
        if kept is None:
            late = bool(points) and _since(start) >= self.deadline_ms
            return Verdict("", Reason.DEADLINE if late else Reason.SYNTAX, f"The draft has {why}.", _since(start))
        return Verdict(draft[:kept], Reason.CUT, f"Cut after {kept} characters: the draft has {why}.", _since(start))

    def objection(self, draft: str) -> str:
        """What speaks against showing all of `draft`, which is whole, in a few words; empty if nothing does.

        It is remembered, so that `check` of the same draft costs nothing more.
        """
        if draft not in self._known:
            self._known[draft] = self._judged(draft)
        return self._known[draft]

    def _objection(self, draft: str, *, cut: bool = False, stopped: bool = False) -> str:
        """`objection`, also to a cut, which has to end with a whole statement, and to what was stopped."""
        return self._judged(draft, cut=cut, stopped=stopped) if cut or stopped else self.objection(draft)

    def _judged(self, draft: str, *, cut: bool = False, stopped: bool = False) -> str:
        if not draft:
            return ""
        if _FOREIGN.search(draft):
            return "a character that no source text holds"
        if self._depth + scan(self.grammar, draft).depth > MAX_DEPTH:
            return "brackets around it that are nested too deeply to be judged"
        if self._hole.in_string:
            return self._objection_in_string(draft, cut)
        if parses(self.grammar, self._window.text(draft)):
            return "" if self._whole_parses(draft) or not self._whole_before else ADDED
        if not (cut and self._window_before) and self._whole_parses(draft):
            return ""  # the window did not show enough of the file
        if self._window_before or self._whole_before:
            return ADDED
        return "no whole statement at its end" if cut else self._unfinished(draft, stopped)

    def _whole_parses(self, draft: str) -> bool:
        small = len(self.prefix) + len(self.suffix) <= MAX_WHOLE
        return small and parses(self.grammar, self.prefix + draft + self.suffix)

    @cached_property
    def _window(self) -> Window:
        return window(self.grammar, self.prefix, self.suffix)

    @cached_property
    def _whole_before(self) -> bool:
        return self._whole_parses("")

    @cached_property
    def _window_before(self) -> bool:
        return parses(self.grammar, self._window.text(""))

    @cached_property
    def _depth(self) -> int:
        """The nesting that a parser would meet: of the window where only that meets tree-sitter, else of the file."""
        if self.grammar.gate.compiler:
            return scan(self.grammar, self._window.text("")).depth
        return scan_prefix(self.grammar, self.prefix).depth + scan(self.grammar, self.suffix).depth

    def _objection_in_string(self, draft: str, cut: bool) -> str:
        """The objection where the cursor stands in a string that may run on: the window depends on where it ends."""
        if self._whole_parses(draft):
            return ""
        if self._whole_before:
            return ADDED
        if self._hole.stays_in_string(draft):
            ends_well = self._hole.comment_is_closed or not (cut or "\n" in draft)
            return "" if ends_well and not self._hole.ends_with_quote(draft) else "a string that it does not close"
        after = window(self.grammar, self.prefix + draft, self.suffix)
        return "" if parses(self.grammar, after.text("")) else "a syntax error in or after the string"

    def _unfinished(self, draft: str, stopped: bool) -> str:
        """The objection to a draft in a window that is broken without it and stays so with it."""
        hole = self._hole
        if hole.only_comments(draft):
            return ""
        filled = hole.with_ending(draft)
        if filled is not None and parses(self.grammar, self._window.text(filled)):
            return ""
        if any(parses(self.grammar, whole.window.text(draft)) for whole in hole.with_bodies):
            return ""
        if hole.leaves_open(draft):
            return "a bracket or string that it does not close"
        if stopped and not (hole.window.rest.strip() or draft.rstrip().endswith(_ENDS) or hole.row_holds(draft)):
            return "an end in the middle of an expression"
        if hole.goes_on_with_list(draft) and hole.viable(f"{draft}\n"):
            return ""
        if hole.holds_alone(draft):
            return ""
        if hole.whole_otherwise:
            return "" if hole.fails_later(draft) else "a statement that is not finished"
        objection = hole.local_objection(draft)
        return "" if any(not whole.local_objection(draft) for whole in hole.with_bodies) else objection

    @cached_property
    def _hole(self) -> Hole:
        return Hole(self.grammar, self._window)


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1e3
