"""One open document and its edits. Knows LSP's line ends and positions, never the engine or a file on disk.

The text is kept as a list of lines with their ends, so an edit costs as much as the lines that it touches. Only
LF, CRLF and CR end a line, as the protocol says; form feeds and Unicode separators do not.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from remask.lsp_server.positions import Unit, from_index, has_surrogates, joined, to_index

log = logging.getLogger(__name__)

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a document as the client counts it: `line` from 0, `column` in the client's unit."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Change:
    """One edit: `text` in place of what lies from `start` to `end`, or of everything where `start` is None."""

    text: str
    start: Position | None = None
    end: Position | None = None


class Document:
    """The text of one open document, kept in step with the editor's.

    `version` is the client's, `unit` what its columns count. `edits` counts what changed the text, so that a change is
    known where the version says nothing: some come without one. `in_step` turns False when a change was lost; what is
    here is then the last text known, and a full text from the client puts it right.
    """

    def __init__(self, uri: str, language: str, version: int, text: str, unit: Unit = Unit.UTF16) -> None:
        self.uri = uri
        self.language = language
        self.version = version
        self.unit = unit
        self.in_step = True
        self.edits = 0
        self._lines = _split(joined(text))

    @property
    def text(self) -> str:
        """The whole text with its own line ends."""
        return "".join(self._lines)

    @property
    def normalised(self) -> str:
        """The whole text as the engine sees it; see `split_at`."""
        return _for_engine(self.text)

    @property
    def line_count(self) -> int:
        """How many lines there are; at least one, and the last has no line end."""
        return len(self._lines)

    @property
    def size(self) -> int:
        """Code points of the text."""
        return sum(map(len, self._lines))

    def line(self, number: int) -> str:
        """A line without its end."""
        return _body(self._lines[number])

    def apply(self, changes: list[Change], version: int | None) -> None:
        """Make the edits in their order. Positions outside the text are clamped, reversed ones are turned round."""
        self.edits += len(changes)
        for change in changes:
            if change.start is None or change.end is None:
                self._lines = _split(joined(change.text))
                self.in_step = True
            else:
                self._replace(change.start, change.end, change.text)
        if version is not None:
            self.version = version

    def split_at(self, position: Position) -> tuple[str, str]:
        """The text before and after a position, both with LF as the only line end and free of lone surrogates."""
        row, index = self.clamp(position)
        line = self._lines[row]
        before = "".join(self._lines[:row]) + line[:index]
        after = line[index:] + "".join(self._lines[row + 1 :])
        return _for_engine(before), _for_engine(after)

    def clamp(self, position: Position) -> tuple[int, int]:
        """The row, and the code point in it, that a position means; never past the text or inside a line end."""
        if position.line < 0:
            return 0, 0
        if position.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        return position.line, to_index(_body(self._lines[position.line]), position.column, self.unit)

    def position(self, row: int, index: int) -> Position:
        """The client's position of code point `index` in line `row`."""
        return Position(row, from_index(_body(self._lines[row]), index, self.unit))

    def offset_at(self, position: Position) -> int:
        """Code points before a position in the text with LF as the only line end."""
        row, index = self.clamp(position)
        return sum(len(_body(line)) + 1 for line in self._lines[:row]) + index

    def position_at(self, offset: int) -> Position:
        """Inverse of `offset_at`; an offset outside the text is clamped."""
        rest = max(offset, 0)
        for row, line in enumerate(self._lines):
            length = len(_body(line))
            if rest <= length:
                return self.position(row, rest)
            rest -= length + 1
        return self.position(len(self._lines) - 1, len(self._lines[-1]))

    def _replace(self, start: Position, end: Position, text: str) -> None:
        first, last = sorted((self.clamp(start), self.clamp(end)))
        row, end_row = first[0], last[0]
        new = self._lines[row][: first[1]] + text + self._lines[end_row][last[1] :]
        if row and new.startswith("\n") and self._lines[row - 1].endswith("\r"):
            row -= 1  # the two make one line end now
            new = self._lines[row] + new
        lines = _split(joined(new))
        if end_row + 1 < len(self._lines):
            lines.pop()  # `new` ends with a line end, and what follows it is there already
        self._lines[row : end_row + 1] = lines


def _split(text: str) -> list[str]:
    lines = _LINE.findall(text)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def _body(line: str) -> str:
    return line.rstrip("\r\n")


def _for_engine(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if has_surrogates(text):
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text
