"""Which tokens of an unfinished canvas the parser blames, and what is to be done about them.

The canvas is read with its holes filled by the model's best guesses. The first true error of that text is the blame:
what stands before it could still have become a program. If the error's token and the two before it are all committed
they are taken back; if one of them is a guess still, that guess is forbidden instead (the rule R3s, measured: 84 % of
wrong tokens found with 2.9 taken back, and no good draft touched). Never reads ERROR nodes, never feeds placeholders.

Knows texts and positions; knows neither model nor tokens' ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from remask.engine.judge.gate import MAX_DEPTH
from remask.engine.judge.window import Window, window
from remask.grammars.errors import Gap, viable_prefix
from remask.grammars.language import Grammar
from remask.grammars.lexis import scan
from remask.grammars.source import byte_count

BEFORE = 2  # tokens before the error's that are blamed with it
WIDER = 4  # the same, when that did not help
TRIES = 2  # how often a position is taken back before the blame is widened
REMEMBERED = 512  # texts
PER_STEP = 3  # tokens taken back at a time, unless the blame was widened


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong: positions to mask again, positions whose guess is forbidden, and why, in a few words."""

    remask: tuple[int, ...]
    forbid: tuple[int, ...]
    why: str
    judge: str = "parser"


class Blame:
    """The parser's judgement of one hole's canvases; remembers what it took back.

    `closed`: the canvas reaches the suffix, so that this is read as well; else more may follow it.
    """

    def __init__(self, grammar: Grammar, prefix: str, suffix: str, *, closed: bool) -> None:
        self.grammar = grammar
        self._closed = closed
        self._window: Window = window(grammar, prefix, suffix)
        self._tries: Counter[tuple[int, int]] = Counter()  # by the written length and the position
        self._known: dict[str, int | None] = {}  # where drafts break: passes often leave the best guesses as they were
        text = self._window.text("")
        head, tail = text[: self._window.cursor], text[self._window.cursor :]
        self._gap = Gap(grammar, head, tail if closed else "")
        lexis = scan(grammar, head)
        # A text that is broken before the cursor says little of what follows (24 % false alarms); one that is nested
        # too deeply takes the parser longer than any pass.
        self.trusted = lexis.depth <= MAX_DEPTH and not lexis.inside and _holds(grammar, head)

    def check(self, written: str, pieces: Sequence[str], committed: Sequence[bool]) -> Finding | None:
        """Judge a canvas behind `written`: the text of each position, and whether it is committed. None: it holds."""
        if not self.trusted or not any(committed):
            return None
        place = self._place(written, pieces)
        if place is None:
            return None
        if place < len(pieces):
            return self._blamed(place, pieces, committed, len(written))
        start = self._window.cursor + len(written)
        text = self._window.text(written)[:start] + "".join(pieces)
        return self._unclosed(text, start, pieces, committed, len(written))

    def breaks(self, written: str, pieces: Sequence[str]) -> int | None:
        """The position at which the text breaks, whatever is committed; None where it holds up to the end."""
        place = self._place(written, pieces) if self.trusted else None
        return None if place == len(pieces) else place

    def _place(self, written: str, pieces: Sequence[str]) -> int | None:
        """The position of the first true error, `len(pieces)` for one behind the canvas, None for none in it."""
        at = self._broken(written + "".join(pieces))
        if at is None:
            return None
        start = self._window.cursor + len(written)
        ends = _ends(byte_count(self._window.text(written)[:start]), pieces)
        if at < ends[0] - byte_count(pieces[0]):
            return None  # what was there before is not the canvas's fault
        return next((i for i, end in enumerate(ends) if at < end), len(pieces))

    def _broken(self, draft: str) -> int | None:
        """The byte at which the window breaks with `draft` in it, or None; one too long to be judged holds."""
        if draft not in self._known:
            if len(self._known) == REMEMBERED:
                self._known.clear()
            self._known[draft] = self._first_break(draft)
        return self._known[draft]

    def _first_break(self, draft: str) -> int | None:
        try:
            if not self._closed:
                return self._gap.first_break(draft)
            return self._gap.first_error(draft)
        except ValueError:
            return None

    def _blamed(self, place: int, pieces: Sequence[str], committed: Sequence[bool], written: int) -> Finding | None:
        tried = self._tries[written, place]
        if tried >= 3 * TRIES:
            return None  # whatever is left the end gate cuts off
        first = self._first(place, pieces, tried)
        positions = range(first, place + 1)
        guessed = tuple(i for i in positions if not committed[i])
        self._tries[written, place] += 1
        if guessed:
            return Finding((), guessed[-1:], f"a guess breaks the syntax at {pieces[place].strip()!r}")
        return Finding(tuple(positions), (), f"the syntax breaks at {pieces[place].strip()!r}")

    def _first(self, place: int, pieces: Sequence[str], tried: int) -> int:
        """Where the blamed stretch starts: two tokens back, then four, then the start of the line."""
        if tried < TRIES:
            return max(0, place - BEFORE)
        if tried < 2 * TRIES:
            return max(0, place - WIDER)
        for i in range(place, -1, -1):
            if "\n" in pieces[i]:  # the token that ends the line above may hold the start of this one
                return i if pieces[i].rpartition("\n")[2].strip() else min(i + 1, place)
        return 0

    def _unclosed(
        self, text: str, start: int, pieces: Sequence[str], committed: Sequence[bool], written: int
    ) -> Finding | None:
        """The error comes after the canvas: the last bracket or quote that it leaves open is to blame."""
        lexis = scan(self.grammar, text)
        opened = [at for at in (*(at for _, at in lexis.stack), lexis.open_at) if at >= start]
        if not opened:
            return None
        at, place = max(opened) - start, 0
        while at >= len(pieces[place]):
            at -= len(pieces[place])
            place += 1
        if self._tries[written, place] >= TRIES:
            return None
        self._tries[written, place] += 1
        why = f"{pieces[place].strip()!r} is never closed"
        return Finding((place,), (), why) if committed[place] else Finding((), (place,), why)


def _holds(grammar: Grammar, head: str) -> bool:
    """Whether a head can still become a program; one too long to be judged can."""
    try:
        return viable_prefix(grammar, head)
    except ValueError:
        return True


def _ends(start: int, pieces: Sequence[str]) -> list[int]:
    """The byte behind each piece."""
    ends = []
    for piece in pieces:
        start += byte_count(piece)
        ends.append(start)
    return ends
