"""A trace as a person reads it: one row of cells a pass, with what each position held and how sure the model was.

Every colour is said in signs, too: below a token stands its probability in tenths, `+` before it where the pass
committed the token, `?` where it is a guess only, `x` where it was taken back. Knows a console; knows no file.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from remask.engine.decode.events import AnyEvent, Denoised, Prompted, Remasked, Searched, Verified
from remask.engine.decode.trace import Record

MARGIN = 4  # columns before a row of cells
MAX_CELL = 24  # columns of one token
LINES_ABOVE = 3
SURE, DOUBTFUL = 0.8, 0.5  # probabilities from which a token is drawn green, and yellow; below is red

WIDE = {" ": "·", "\n": "⏎", "\t": "→", "mask": "░", "dots": "…", "gone": "~", "ok": "✓"}
PLAIN = {" ": "_", "\n": "\\n", "\t": "\\t", "mask": "#", "dots": "...", "gone": "~", "ok": "ok"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A token and the sign below it."""

    text: str
    sign: str
    style: str


def draw(record: Record, console: Console) -> None:
    """Print one request, pass by pass."""
    picture = _Picture(record, console)
    for line in picture.lines():
        console.print(line, no_wrap=True, crop=True, overflow="crop")


class _Picture:
    def __init__(self, record: Record, console: Console) -> None:
        self.record = record
        self.width = max(20, console.width)
        self.signs = WIDE if (console.encoding or "").lower().replace("-", "").startswith("utf") else PLAIN
        self.coloured = console.color_system is not None

    def lines(self) -> Iterator[Text]:
        record = self.record
        yield from self._wrapped(f"{record.document} ({record.language})", "bold")
        yield from self._wrapped(f"{record.model}, policy {record.policy}", "dim")
        above = record.prefix.split("\n")[-LINES_ABOVE:]
        for line in above:
            yield Text(f"  | {self._clean(line, spaces=False)}", style="dim")
        attempt = 0
        for number, event in enumerate(record.events, 1):
            if event.attempt != attempt:
                attempt = event.attempt
                yield from self._wrapped(f"Another candidate, drawn with seed {attempt}:", "bold")
            yield from self._wrapped(f"{number:>3} {event.kind:<8} {event.ms:>7.1f} ms  {self._headline(event)}", "")
            yield from self._rows(self._cells(event))
        ends = f"{record.tokens} tokens in {record.forwards} passes, {record.ms:.0f} ms; ended by: {record.reason}."
        yield from self._wrapped(ends, "bold")
        for line in record.text.split("\n") if record.text else ():
            yield Text(f"  | {self._clean(line, spaces=False)}", style="cyan")

    def _headline(self, event: AnyEvent) -> str:
        if isinstance(event, Prompted):
            return f"{event.total} tokens: {event.cached} cached, {event.run} read in {event.passes} passes"
        if isinstance(event, Denoised):
            left = sum(event.open)
            return f"after {event.at} tokens: {len(event.committed)} of {len(event.ids)} committed, {left} open"
        if isinstance(event, Remasked):
            return f"{event.judge}: {self._clean(event.reason, spaces=False)}"
        if isinstance(event, Verified):
            drafted = f"{event.accepted} of {len(event.ids)} accepted ({event.source})" if event.ids else "no draft"
            return f"after {event.at} tokens: {drafted}"
        if isinstance(event, Searched):
            text = f" | {self._clean(event.text)}" if event.text else ""
            value = f", {event.value:.2f} nats" if event.value else ""
            why = f": {self._clean(event.why, spaces=False)}" if event.why else ""
            return f"text {event.node} {event.what}{value}{why}{text}"
        kept = "nothing kept, " if not event.kept else "all kept, " if event.kept == event.draft else "a part kept, "
        said = f"{kept}{event.reason}. {event.detail}" if event.reason else event.detail
        return f"{event.judge}: {self._clean(said, spaces=False)}"

    def _cells(self, event: AnyEvent) -> list[Cell]:
        if isinstance(event, Denoised):
            return [self._position(event, place) for place in range(len(event.ids))]
        if isinstance(event, Remasked):
            return [self._gone(text, "x") for text in event.texts]
        if isinstance(event, Verified):
            *sure, last = event.confidence
            pairs = zip(event.texts[: event.accepted], sure, strict=True)
            cells = [Cell(self._clean(text) or "end", f"+{_tenth(p)}", _colour(p)) for text, p in pairs]
            cells += [self._gone(text, "x") for text in event.texts[event.accepted :]]
            return [*cells, Cell(self._clean(event.own_text) or "end", f"={_tenth(last)}", f"bold {_colour(last)}")]
        return []

    def _position(self, event: Denoised, place: int) -> Cell:
        text, sure = self._clean(event.texts[place]) or "end", event.confidence[place]
        if event.open[place]:
            return Cell(f"{self.signs['mask']}{text}", f"?{_tenth(sure)}", "dim")
        new = place in event.committed
        return Cell(text, f"{'+' if new else ' '}{_tenth(sure)}", f"bold {_colour(sure)}" if new else _colour(sure))

    def _gone(self, text: str, sign: str) -> Cell:
        shown, mark = self._clean(text) or "end", "" if self.coloured else self.signs["gone"]
        return Cell(f"{mark}{shown}{mark}", sign, "strike red")

    def _rows(self, cells: list[Cell]) -> Iterator[Text]:
        """Cells side by side, in as many rows as the width needs; under each row its signs."""
        row: list[Cell] = []
        used = MARGIN
        for cell in cells:
            if row and used + _width(cell) > self.width:
                yield from _row(row)
                row, used = [], MARGIN
            row.append(cell)
            used += _width(cell)
        if row:
            yield from _row(row)

    def _clean(self, text: str, *, spaces: bool = True) -> str:
        """The text with white space to be seen; nothing in it may command the terminal."""
        out = []
        for letter in text:
            if letter in self.signs and (spaces or letter != " "):
                out.append(self.signs[letter])
            else:
                out.append(letter if letter.isprintable() else "?")
        shown = "".join(out)
        if spaces and cell_len(shown) > MAX_CELL:
            shown = shown[: MAX_CELL // 2] + self.signs["dots"]
        return shown

    def _wrapped(self, text: str, style: str) -> Iterator[Text]:
        shown = "".join(letter if letter.isprintable() else "?" for letter in text)
        for line in textwrap.wrap(shown, self.width, subsequent_indent=" " * MARGIN, drop_whitespace=True):
            yield Text(line, style=Style.parse(style))


def _row(cells: list[Cell]) -> Iterator[Text]:
    tokens, signs = Text(" " * MARGIN), Text(" " * MARGIN)
    for cell in cells:
        width = _width(cell)
        tokens.append(cell.text, style=cell.style)
        tokens.append(" " * (width - cell_len(cell.text)))
        signs.append(cell.sign.ljust(width), style="dim")
    tokens.rstrip()
    signs.rstrip()
    yield tokens
    yield signs


def _width(cell: Cell) -> int:
    """Columns of a cell with the gap behind it."""
    return max(cell_len(cell.text), len(cell.sign)) + 1


def _tenth(probability: float) -> int:
    return max(0, min(9, int(probability * 10)))


def _colour(probability: float) -> str:
    return "green" if probability >= SURE else "yellow" if probability >= DOUBTFUL else "red"
