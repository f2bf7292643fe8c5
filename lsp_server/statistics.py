"""What became of the completions that were offered: counted on this machine, kept in one small file, never sent.

Numbers only, by day: no text, no file names. `remask stats` shows them.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import json
import logging
import os
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from remask.contract.errors import RemaskError
from remask.contract.places import cache_dir
from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.documents import Event, key_of
from remask.lsp_server.following import Following
from remask.lsp_server.positions import Unit, to_index

log = logging.getLogger(__name__)

COUNTS = (
    *("offered", "shown", "accepted", "partly", "typed", "rejected"),
    *("characters_offered", "characters_accepted", "characters_kept", "characters_checked"),
)
"""`partly`: accepted by words or lines; `typed`: written by hand exactly as it was offered, so right, but not accepted;
`rejected`: none of these; `kept` of `checked` characters were still there half a minute later."""

KEPT_AFTER_S = 30.0
KEPT_DAYS = 400
_OFFERS = 64
_TOKENS = 200
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(slots=True)
class _Offer:
    document: str
    row: int
    texts: tuple[str, ...]
    following: Following
    shown: bool = False
    taken: int = 0  # characters
    replaced: bool = False  # by a newer one; an editor may still show this one, and the user take it


@dataclass(slots=True)
class _Taken:
    document: Document
    row: int
    text: str
    at: float


class Statistics:
    """Counts since the last `flush`, and the offers that may still be accepted."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.counts: Counter[str] = Counter()
        self._offers: OrderedDict[int, _Offer] = OrderedDict()
        self._taken: list[_Taken] = []
        self._told_of_parts = False  # by the client, so that they need not be found out

    def offered(self, number: int, document: str, at: Position, texts: tuple[str, ...]) -> None:
        """Texts were sent to the editor; the same number comes again when the rest of them is."""
        if number in self._offers:
            return
        for offer in self._offers.values():
            offer.replaced |= offer.document == document
        self._offers[number] = _Offer(document, at.line, texts, Following(texts[0], at))
        self.counts["offered"] += 1
        self.counts["characters_offered"] += len(texts[0])
        while len(self._offers) > _OFFERS:
            self._settle(next(iter(self._offers)))

    def shown(self, number: int) -> None:
        """The editor has shown it."""
        offer = self._offers.get(number)
        if offer is not None and not offer.shown:
            offer.shown = True
            self.counts["shown"] += 1

    def partly(self, number: int, units: int, text: str) -> None:
        """The client says that the user took so much of `text`, an item of this number, in UTF-16 units from its start.

        The item may be the rest of what was offered, since the same number goes with each rest.
        """
        self._told_of_parts = True
        offer = self._offers.get(number)
        if offer is not None:
            gone = len(offer.texts[0]) - len(text) if offer.texts[0].endswith(text) else 0
            self._took(number, gone + to_index(text, units, Unit.UTF16))

    def _took(self, number: int, characters: int) -> None:
        offer = self._offers.get(number)
        if offer is not None and characters > offer.taken:
            self.counts["partly"] += not offer.taken
            self.counts["characters_accepted"] += min(characters, len(offer.texts[0])) - offer.taken
            offer.taken = characters

    def accepted(self, number: int, index: int, document: Document | None) -> None:
        """The user took all of the text with this index."""
        offer = self._offers.pop(number, None)
        if offer is None or not 0 <= index < len(offer.texts):
            return
        text = offer.texts[index]
        self.counts["accepted"] += 1
        self.counts["characters_accepted"] += max(0, len(text) - offer.taken)
        if document is not None and key_of(document.uri) == offer.document:
            self._taken.append(_Taken(document, offer.row, text, time.monotonic()))

    def heard(self, event: Event, document: Document, changes: list[Change]) -> None:
        """A document changed: follow what was offered and accepted in it, and see later how much is still there."""
        if event is Event.CHANGED:
            self._follow(document, changes)
        for taken in [one for one in self._taken if one.document is document]:
            for change in changes:
                if change.start is not None and change.end is not None and change.end.line < taken.row:
                    taken.row += change.text.count("\n") - (change.end.line - change.start.line)
            if event is Event.CLOSED or time.monotonic() - taken.at > KEPT_AFTER_S:
                self._taken.remove(taken)
                self.counts["characters_checked"] += len(taken.text)
                self.counts["characters_kept"] += kept_characters(taken.text, _around(document, taken))
        if event is Event.CLOSED:
            for number, offer in list(self._offers.items()):
                if offer.document == key_of(document.uri):
                    self._settle(number)
        if event in (Event.CLOSED, Event.SAVED):
            self.flush()

    def _follow(self, document: Document, changes: list[Change]) -> None:
        key = key_of(document.uri)
        for number, offer in self._offers.items():
            if offer.document == key and not offer.replaced:
                characters = offer.following.taken_by(changes, document.unit)
                if characters and not self._told_of_parts:
                    self._took(number, offer.taken + characters)

    def flush(self) -> None:
        """Add what was counted to the file; where that fails, or another server is at it, with the next flush."""
        for number in [one for one, offer in self._offers.items() if offer.replaced]:
            self._settle(number)
        if self.enabled and self.counts:
            try:
                _add(self.counts, datetime.date.today().isoformat())
            except (OSError, RemaskError) as error:
                log.info("the statistics were not written (%s)", type(error).__name__)
                return
        self.counts.clear()

    def _settle(self, number: int) -> None:
        offer = self._offers.pop(number)
        if not offer.taken:
            self.counts["typed" if offer.following.finished else "rejected"] += 1


def kept_characters(text: str, now: str) -> int:
    """How many characters of `text` are still there, word by word in their order."""
    ours, theirs = _TOKEN.findall(text)[:_TOKENS], _TOKEN.findall(now)[: 2 * _TOKENS]
    blocks = difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    kept = sum(len(token) for block in blocks for token in ours[block.a : block.a + block.size])
    whole = sum(map(len, ours))
    return round(len(text) * kept / whole) if whole else len(text)


def read_statistics(path: Path | None = None) -> dict[str, dict[str, int]]:
    """The counts by day; nothing where there is no sound file."""
    try:
        days = json.loads((path or _file()).read_text("utf-8"))["days"]
        return {str(day): {name: int(counts.get(name, 0)) for name in COUNTS} for day, counts in days.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return {}


def _around(document: Document, taken: _Taken) -> str:
    first = max(0, taken.row - 1)
    last = min(document.line_count, taken.row + taken.text.count("\n") + 4)
    return "\n".join(document.line(row) for row in range(first, last))


def _file() -> Path:
    return cache_dir() / "statistics.json"


def _add(counts: Counter[str], day: str) -> None:
    path = _file()
    with _locked(path.with_suffix(".lock")):
        days = read_statistics(path)
        today = days.setdefault(day, dict.fromkeys(COUNTS, 0))
        for name in COUNTS:
            today[name] += counts[name]
        kept = dict(sorted(days.items())[-KEPT_DAYS:])
        new = path.with_suffix(f".{os.getpid()}")
        try:
            new.write_text(json.dumps({"days": kept}), "utf-8")
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)  # a full disk leaves half a file


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock among servers, where the system has one. Raises BlockingIOError at once where another holds it."""
    with path.open("w") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
