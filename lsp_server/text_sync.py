"""`textDocument/didOpen`, `didChange` and `didClose`, read strictly. Knows the documents, no feature.

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

log = logging.getLogger(__name__)


def handle(documents: DocumentStore, method: str, params: object) -> None:
    """Carry out one of the notifications in METHODS. Never raises for what a client sends."""
    uri = ""
    try:
        item = _dict(_dict(params).get("textDocument"))
        uri = _text(item.get("uri"))
        METHODS[method](documents, uri, item, _dict(params))
    except InputError:
        log.error("a %s cannot be read; its document is out of step until it is opened again", method)
        documents.distrust(uri)


def _open(documents: DocumentStore, uri: str, item: dict[str, Any], _: dict[str, Any]) -> None:
    language = item.get("languageId")
    text = _text(item.get("text"))
    documents.open(uri, language if isinstance(language, str) else "", _version(item) or 0, text)


def _change(documents: DocumentStore, uri: str, item: dict[str, Any], params: dict[str, Any]) -> None:
    events = params.get("contentChanges")
    if not isinstance(events, list):
        raise InputError("A message lacks what it must have.")
    documents.change(uri, _version(item), [_read_event(event) for event in events])


def _close(documents: DocumentStore, uri: str, _: dict[str, Any], __: dict[str, Any]) -> None:
    documents.close(uri)


METHODS: dict[str, Callable[[DocumentStore, str, dict[str, Any], dict[str, Any]], None]] = {
    types.TEXT_DOCUMENT_DID_OPEN: _open,
    types.TEXT_DOCUMENT_DID_CHANGE: _change,
    types.TEXT_DOCUMENT_DID_CLOSE: _close,
}


def _read_event(event: object) -> Change:
    values = _dict(event)
    text = _text(values.get("text"))
    if values.get("range") is None:
        return Change(text)
    span = _dict(values["range"])
    return Change(text, _position(span.get("start")), _position(span.get("end")))


def _position(value: object) -> Position:
    values = _dict(value)
    return Position(_count(values.get("line")), _count(values.get("character")))


def _version(item: dict[str, Any]) -> int | None:
    version = item.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InputError("A message lacks what it must have.")
    return value


def _dict(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError("A message lacks what it must have.")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError("A message lacks what it must have.")
    return value
