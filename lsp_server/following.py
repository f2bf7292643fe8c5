"""What the user has put into a document of a text that was offered, as its changes tell. Knows texts and positions.

A client may say that a part was taken (`didPartiallyAcceptCompletion`); most cannot. But a part that is taken comes in
one change, where it was offered, and is longer than a key: this tells it from typing. Whole acceptance is told by the
item's command; a text that is there in whole and was not accepted was typed.
"""

from __future__ import annotations

from remask.lsp_server.document import Change, Position
from remask.lsp_server.positions import Unit, size

LEAST = 2  # characters; one may be a key
_PAIRS = frozenset({"()", "[]", "{}", "<>", '""', "''", "``"})
"""What one key writes where the editor closes brackets and quotes."""


class Following:
    """How much of an offered text stands in the document, and where the rest would go."""

    def __init__(self, text: str, at: Position) -> None:
        self._text = text
        self._done = 0
        self._at = at
        self._closed = ""  # what the editor has closed by itself behind the place, in the order of the text

    @property
    def finished(self) -> bool:
        """Whether all of the text is there, but for what the editor has closed already."""
        rest = self._text[self._done :].rstrip()
        return not rest or rest == self._closed[: len(rest)]

    def taken_by(self, changes: list[Change], unit: Unit) -> int:
        """How many characters these changes took at once, if they took a part; else 0. Typed ones are left behind."""
        if len(changes) != 1 or changes[0].start is None or changes[0].end is None:
            return 0
        (change,) = changes
        assert change.start is not None
        text = change.text.replace("\r\n", "\n")
        if change.start != change.end:
            self._taken_back(change.start, change.end, text, unit)
            return 0
        self._step_over(change.start, unit)
        if not text or change.start != self._at:
            return 0
        rest = self._text[self._done :]
        if rest.startswith(text):
            self._go_on(text, unit)
            is_part = len(text) >= LEAST and text.strip() and text not in _PAIRS
            return len(text) if is_part and self._text[self._done :].strip() else 0
        if text in _PAIRS and rest.startswith(text[0]):
            self._go_on(text[0], unit)
            self._closed = text[1] + self._closed
        return 0

    def _go_on(self, text: str, unit: Unit) -> None:
        """So much more of the text is there."""
        self._done += len(text)
        rows, last = text.count("\n"), text.rpartition("\n")[2]
        self._at = Position(self._at.line + rows, size(last, unit) + (0 if rows else self._at.column))

    def _step_over(self, to: Position, unit: Unit) -> None:
        """The user went on behind what the editor has closed, as if it had been typed."""
        count = to.column - self._at.column if to.line == self._at.line else 0
        over = self._closed[: max(0, count)]
        if over and len(over) == count and self._text.startswith(over, self._done):
            self._closed = self._closed[count:]
            self._go_on(over, unit)

    def _taken_back(self, start: Position, end: Position | None, text: str, unit: Unit) -> None:
        """The end of what is there was deleted, as to mend a slip: it may be typed again."""
        if text or end != self._at or start.line != self._at.line:
            return
        for count in range(1, self._done + 1):
            gone = self._text[self._done - count : self._done]
            if size(gone, unit) >= self._at.column - start.column:
                break
        else:
            return
        if size(gone, unit) == self._at.column - start.column and "\n" not in gone:
            self._done -= count
            self._at = start
