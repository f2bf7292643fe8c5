"""What was written lately at which place, so that typing the text of a completion asks nobody again.

Knows texts only: a place is a prefix and a suffix. A text is good as long as the user has typed, or accepted, nothing
but its beginning; also where the editor closed brackets that were typed.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from remask.lsp_server.postprocess import drop_overlap

KEPT_PER_DOCUMENT = 24
KEPT_DOCUMENTS = 16
_AUTO_CLOSED = frozenset(")]}\"'`>")


@dataclass(frozen=True, slots=True)
class Written:
    """Texts that were written for a place, the best first. `number` names them in the statistics."""

    number: int
    prefix_length: int
    prefix_hash: int
    suffix_length: int
    suffix_hash: int
    texts: tuple[str, ...]


class History:
    """The texts written for each document, newest first."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, deque[Written]] = OrderedDict()
        self._next = 0

    def keep(self, document: str, prefix: str, suffix: str, texts: tuple[str, ...]) -> int:
        """Remember texts for a place; returns their number."""
        self._next += 1
        entries = self._documents.setdefault(document, deque(maxlen=KEPT_PER_DOCUMENT))
        self._documents.move_to_end(document)
        while len(self._documents) > KEPT_DOCUMENTS:
            self._documents.popitem(last=False)
        entries.appendleft(Written(self._next, len(prefix), hash(prefix), len(suffix), hash(suffix), texts))
        return self._next

    def find(self, document: str, prefix: str, suffix: str) -> tuple[int, tuple[str, ...]] | None:
        """What is left, at this place, of texts written lately; their number and what remains of each."""
        for entry in self._documents.get(document, ()):
            rests = _rests(entry, prefix, suffix)
            if rests:
                return entry.number, rests
        return None

    def forget(self, document: str) -> None:
        """Drop all texts of a document."""
        self._documents.pop(document, None)


def _rests(entry: Written, prefix: str, suffix: str) -> tuple[str, ...]:
    typed = prefix[entry.prefix_length :] if len(prefix) >= entry.prefix_length else None
    if typed is None:
        return ()
    matching = [text for text in entry.texts if text.startswith(typed) and len(text) > len(typed)]
    if not matching:
        return ()
    closed = len(suffix) - entry.suffix_length  # characters that the editor put after the cursor
    if not 0 <= closed <= len(typed) or not set(suffix[:closed]) <= _AUTO_CLOSED:
        return ()
    if hash(suffix[closed:]) != entry.suffix_hash or hash(prefix[: entry.prefix_length]) != entry.prefix_hash:
        return ()
    rests = [text[len(typed) :] for text in matching]
    if closed:
        rests = [_without_closed(rest, prefix, suffix, closed) for rest in rests]
    return tuple(rest for rest in dict.fromkeys(rests) if rest.strip())


def _without_closed(rest: str, prefix: str, suffix: str, closed: int) -> str:
    """The rest where the editor has put closers behind the cursor; empty if they do not fit it."""
    trimmed = drop_overlap(rest, prefix, suffix)
    return trimmed if rest[len(trimmed) :].startswith(suffix[:closed]) else ""
