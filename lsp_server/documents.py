"""All open documents, found by URI however a client spells it. Knows no file on disk.

Clients write the same file as `file:///C%3A/a.py` and `file:///c:/a.py`; the key is one of them, the document keeps
the URI as it was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from enum import Enum

from remask.lsp_server.document import Change, Document
from remask.lsp_server.positions import Unit
from remask.lsp_server.uris import parse

log = logging.getLogger(__name__)


def key_of(uri: str) -> str:
    """The name under which a document is kept: unquoted, with a small drive letter."""
    return parse(uri).key


class Event(Enum):
    """What happened to a document."""

    OPENED = "opened"
    CHANGED = "changed"
    SAVED = "saved"
    CLOSED = "closed"


Listener = Callable[[Event, Document, list[Change]], None]


class DocumentStore:
    """The documents that the client has open. `unit` is what their columns count; set it before the first is opened.

    `listeners` are called after each event, with the changes where the text has changed; they must not raise.
    """

    def __init__(self, unit: Unit = Unit.UTF16) -> None:
        self.unit = unit
        self.listeners: list[Listener] = []
        self._documents: dict[str, Document] = {}

    def open(self, uri: str, language: str, version: int, text: str) -> Document:
        """Take a document in; one of the same name is replaced."""
        document = Document(uri, language, version, text, self.unit)
        self._documents[key_of(uri)] = document
        self._tell(Event.OPENED, document)
        return document

    def change(self, uri: str, version: int | None, changes: list[Change]) -> None:
        """Edit an open document; a change to one that is not open is logged and dropped."""
        document = self.get(uri)
        if document is None:
            log.warning("a change came for a document that is not open")
            return
        was_in_step = document.in_step
        document.apply(changes, version)
        if document.in_step and not was_in_step:
            log.info("a document is in step with the editor again")
        self._tell(Event.CHANGED, document, changes)

    def saved(self, uri: str, text: str | None) -> None:
        """The client has saved a document; `text`, if it sent it, puts one that is out of step right."""
        document = self.get(uri)
        if document is None:
            return
        if text is not None and not document.in_step:
            self.change(uri, None, [Change(text)])
        self._tell(Event.SAVED, document)

    def distrust(self, uri: str) -> None:
        """Mark a document of which a change was lost: nothing is offered in it until its full text comes again."""
        document = self.get(uri)
        if document is not None:
            document.in_step = False

    def close(self, uri: str) -> None:
        """Forget a document; one that is not open is none of our concern."""
        document = self._documents.pop(key_of(uri), None)
        if document is not None:
            self._tell(Event.CLOSED, document)

    def get(self, uri: str) -> Document | None:
        """The open document of that name, if there is one."""
        return self._documents.get(key_of(uri))

    def _tell(self, event: Event, document: Document, changes: list[Change] | None = None) -> None:
        for listener in self.listeners:
            listener(event, document, changes or [])

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._documents.values()))

    def __len__(self) -> int:
        return len(self._documents)
