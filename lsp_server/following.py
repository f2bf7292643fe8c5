"""What the user has put into a document of a text that was offered, as its changes tell. Knows texts and positions.

A client may say that a part was taken (`didPartiallyAcceptCompletion`); most cannot. But a part that is taken comes in
one change, where it was offered, and is longer than a key: this tells it from typing. Whole acceptance is told by the
item's command.
"""

from __future__ import annotations

from remask.lsp_server.document import Change, Position
from remask.lsp_server.positions import Unit, size

LEAST = 2  # characters; one may be a key


class Following:
    """The rest of an offered text, and where it would go."""

    def __init__(self, text: str, at: Position) -> None:
        self._rest = text
        self._at = at

    def taken_by(self, changes: list[Change], unit: Unit) -> int:
        """How many characters these changes took at once, if they took a part; else 0. Typed ones are left behind."""
        if not self._rest or len(changes) != 1:
            return 0
        (change,) = changes
        text = change.text.replace("\r\n", "\n")
        if change.start is None or change.start != change.end:
            return 0
        if change.start != self._at or not self._rest.startswith(text):
            return 0
        self._rest = self._rest[len(text) :]
        rows, last = text.count("\n"), text.rpartition("\n")[2]
        self._at = Position(self._at.line + rows, size(last, unit) + (0 if rows else self._at.column))
        return len(text) if len(text) >= LEAST and self._rest.strip() else 0
