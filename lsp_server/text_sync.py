"""`textDocument/didOpen`, `didChange`, `didSave` and `didClose`, read strictly. Knows the documents, no feature.

Read here and not by the generated types, which take `{"text": null}` for a new text "None". A message that cannot be
read changes nothing: its document keeps its last text and is out of step until the client sends a whole text again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from remask.contract.errors import InputError
from remask.lsp_server.document import Change, Position
from remask.lsp_server.documents import DocumentStore
from remask.lsp_server.reading import count, dict_of, list_of, text_of

log = logging.getLogger(__name__)


def handle(documents: DocumentStore, method: str, params: object) -> None:
    """Carry out one of the notifications in METHODS. Never raises for what a client sends."""
    uri = ""
    try:
        item = dict_of(dict_of(params).get("textDocument"))
        uri = text_of(item.get("uri"))
        METHODS[method](documents, uri, item, dict_of(params))
    except InputError:
        if method not in _CHANGING:
            log.error("a %s cannot be read", method)
            return
        log.error("a %s cannot be read; its document is out of step until it is saved or opened again", method)
        documents.distrust(uri)


def _open(documents: DocumentStore, uri: str, item: dict[str, Any], _: dict[str, Any]) -> None:
    language = item.get("languageId")
    text = text_of(item.get("text"))
    documents.open(uri, language if isinstance(language, str) else "", _version(item) or 0, text)


def _change(documents: DocumentStore, uri: str, item: dict[str, Any], params: dict[str, Any]) -> None:
    events = list_of(params.get("contentChanges"))
    documents.change(uri, _version(item), [_read_event(event) for event in events])


def _close(documents: DocumentStore, uri: str, _: dict[str, Any], __: dict[str, Any]) -> None:
    documents.close(uri)


def _save(documents: DocumentStore, uri: str, _: dict[str, Any], params: dict[str, Any]) -> None:
    text = params.get("text")
    documents.saved(uri, text if isinstance(text, str) else None)


METHODS: dict[str, Callable[[DocumentStore, str, dict[str, Any], dict[str, Any]], None]] = {
    types.TEXT_DOCUMENT_DID_OPEN: _open,
    types.TEXT_DOCUMENT_DID_CHANGE: _change,
    types.TEXT_DOCUMENT_DID_SAVE: _save,
    types.TEXT_DOCUMENT_DID_CLOSE: _close,
}


_CHANGING = frozenset({types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE})


def _read_event(event: object) -> Change:
    values = dict_of(event)
    text = text_of(values.get("text"))
    if values.get("range") is None:
        return Change(text)
    span = dict_of(values["range"])
    return Change(text, _position(span.get("start")), _position(span.get("end")))


def _position(value: object) -> Position:
    values = dict_of(value)
    return Position(count(values.get("line")), count(values.get("character")))


def _version(item: dict[str, Any]) -> int | None:
    version = item.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None
