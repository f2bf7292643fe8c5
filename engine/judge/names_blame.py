"""Names that nothing defines, as positions of a canvas to be masked again, once.

Fits where the parser's blame does (`Remasker` takes either, or both in turn). Only what is committed is judged, line by
line from the start: a guess that is wrong may still come right by itself. Knows texts and positions; knows neither
model nor tokens' ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from remask.engine.judge.blame import Finding
from remask.engine.judge.names import NamesJudge
from remask.grammars.source import byte_count


class CanvasJudge(Protocol):
    """What `Remasker` asks: see `Blame`."""

    def check(self, written: str, pieces: Sequence[str], committed: Sequence[bool]) -> Finding | None:
        """What is wrong with the canvas behind `written`; None if it holds."""


class NamesBlame:
    """One hole's blame for unknown names. A name is taken back once; what comes again stays, and lowers the rank."""

    def __init__(self, names: NamesJudge) -> None:
        self._names = names
        self._blamed: set[str] = set()

    def check(self, written: str, pieces: Sequence[str], committed: Sequence[bool]) -> Finding | None:
        """The positions of names that nothing defines; None where there is none, or none that is new."""
        pieces = pieces[: _settled(pieces, committed)]
        if not pieces:
            return None
        begin, text = byte_count(written), written + "".join(pieces)
        end = byte_count(text) if pieces[-1] else -1
        places: set[int] = set()
        names: list[str] = []
        for unknown in self._names.check(text).unknown:
            touched = positions((unknown.start - begin, unknown.end - begin), pieces)
            may_go_on = unknown.end == end  # in the next canvas
            if touched and not may_go_on and unknown.name not in self._blamed:
                places.update(touched)
                names.append(unknown.name)
        self._blamed.update(names)
        if not names:
            return None
        return Finding(tuple(sorted(places)), (), f"nothing defines {', '.join(dict.fromkeys(names))}", judge="names")


class InTurn:
    """Several judges: the first that finds something is heard."""

    def __init__(self, *judges: CanvasJudge) -> None:
        self._judges = judges

    def check(self, written: str, pieces: Sequence[str], committed: Sequence[bool]) -> Finding | None:
        """See `CanvasJudge`."""
        found = (judge.check(written, pieces, committed) for judge in self._judges)
        return next((one for one in found if one is not None), None)


def _settled(pieces: Sequence[str], committed: Sequence[bool]) -> int:
    """How many positions from the start will not go on: all of them, or those up to a line end, or to an end token.

    An end token has no text; neither has the first part of a character that is split, which does no harm here.
    """
    run = next((place for place, known in enumerate(committed) if not known), None)
    if run is None:
        return len(pieces)
    return next((place + 1 for place in range(run - 1, -1, -1) if "\n" in pieces[place] or not pieces[place]), 0)


def positions(span: tuple[int, int], pieces: Sequence[str]) -> list[int]:
    """The pieces that a span of bytes of their joined text touches."""
    start, end = span
    at, found = 0, []
    for place, piece in enumerate(pieces):
        behind = at + byte_count(piece)
        if at < end and start < behind:
            found.append(place)
        at = behind
    return found
