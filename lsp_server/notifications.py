"""Notifications that are read strictly, from raw JSON: what is malformed changes nothing and is logged.

Text synchronisation, notebooks, folders, settings, files that changed on disk, and what became of completions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from lsprotocol import types

from remask.contract.errors import InputError
from remask.lsp_server import text_sync
from remask.lsp_server.client import Client
from remask.lsp_server.features.ghost import ACCEPTED
from remask.lsp_server.reading import count, dict_of, list_of, text_of
from remask.lsp_server.settings import Settings
from remask.lsp_server.workspace import Workspace

log = logging.getLogger(__name__)

DID_SHOW = "textDocument/didShowCompletion"
DID_PARTIALLY_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
DID_FOCUS = "textDocument/didFocus"
IGNORE_FILES = frozenset({".gitignore", ".remaskignore", "exclude"})

TEXT_METHODS = frozenset(text_sync.METHODS)
NOTEBOOK_METHODS = frozenset(
    {types.NOTEBOOK_DOCUMENT_DID_OPEN, types.NOTEBOOK_DOCUMENT_DID_CHANGE, types.NOTEBOOK_DOCUMENT_DID_CLOSE}
)
OTHER_METHODS = frozenset(
    {
        *(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, types.WORKSPACE_DID_CHANGE_CONFIGURATION),
        *(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, types.WINDOW_WORK_DONE_PROGRESS_CANCEL),
        *(DID_SHOW, DID_PARTIALLY_ACCEPT, DID_FOCUS, types.NOTEBOOK_DOCUMENT_DID_SAVE),
    }
)
METHODS = TEXT_METHODS | NOTEBOOK_METHODS | OTHER_METHODS


class Notifications:
    """Carries out the notifications in METHODS."""

    def __init__(self, workspace: Workspace, client: Client, settings: Settings) -> None:
        self._workspace = workspace
        self._client = client
        self._settings = settings
        self._others: dict[str, Callable[[dict[str, Any]], None]] = {
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._folders,
            types.WORKSPACE_DID_CHANGE_CONFIGURATION: lambda params: settings.changed(params.get("settings")),
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES: self._files,
            types.WINDOW_WORK_DONE_PROGRESS_CANCEL: lambda params: client.cancelled(params.get("token")),
            DID_SHOW: self._shown,
            DID_PARTIALLY_ACCEPT: self._partly,
            DID_FOCUS: self._focus,
            types.NOTEBOOK_DOCUMENT_DID_SAVE: lambda _: None,
        }

    def handle(self, method: str, params: object) -> None:
        """Carry out one notification. Never raises for what a client sends."""
        if method in TEXT_METHODS:
            text_sync.handle(self._workspace.documents, method, params)
            return
        if method in NOTEBOOK_METHODS:
            self._workspace.notebooks.handle(method, params)
            return
        try:
            self._others[method](dict_of(params))
        except InputError:
            log.error("a %s cannot be read", method)

    def accepted(self, arguments: Sequence[object]) -> None:
        """The editor ran the command of an item that the user took: [its number, the document's URI]."""
        try:
            number, index = _numbers(arguments[0] if arguments else None)
        except InputError:
            log.error("a %s cannot be read", ACCEPTED)
            return
        uri = arguments[1] if len(arguments) > 1 else None
        document = self._workspace.documents.get(uri) if isinstance(uri, str) else None
        self._workspace.statistics.accepted(number, index, document)

    def _shown(self, params: dict[str, Any]) -> None:
        self._workspace.statistics.shown(_item_number(params))

    def _partly(self, params: dict[str, Any]) -> None:
        number, units = _item_number(params), count(params.get("acceptedLength"))
        self._workspace.statistics.partly(number, units, text_of(dict_of(params["item"]).get("insertText")))

    def _focus(self, params: dict[str, Any]) -> None:
        document = params.get("textDocument")
        if document is not None:
            self._workspace.snippets.visited(text_of(dict_of(document).get("uri")))

    def _folders(self, params: dict[str, Any]) -> None:
        event = dict_of(params.get("event"))
        added = [text_of(dict_of(folder).get("uri")) for folder in list_of(event.get("added") or [])]
        removed = [text_of(dict_of(folder).get("uri")) for folder in list_of(event.get("removed") or [])]
        before = set(self._workspace.folders)
        for uri in removed:
            self._workspace.folders.remove(uri)
        for uri in added:
            self._workspace.folders.add(uri)
        self._workspace.exclusions.changed()
        self._workspace.snippets.folders_changed(before - set(self._workspace.folders))

    def _files(self, params: dict[str, Any]) -> None:
        uris = [text_of(dict_of(change).get("uri")) for change in list_of(params.get("changes"))]
        if any(PurePosixPath(uri).name in IGNORE_FILES for uri in uris):
            self._workspace.exclusions.changed()
            self._workspace.snippets.folders_changed()
        self._workspace.snippets.files_changed(uris)


def _item_number(params: dict[str, Any]) -> int:
    command = dict_of(dict_of(params.get("item")).get("command"))
    if command.get("command") != ACCEPTED:
        raise InputError("The item is not ours.")
    return _numbers((list_of(command.get("arguments")) or [None])[0])[0]


def _numbers(value: object) -> tuple[int, int]:
    number, _, index = text_of(value).partition(".")
    if not (number.isascii() and number.isdigit() and index.isascii() and index.isdigit() and len(number) < 19):
        raise InputError("An item has a number.")
    return int(number), int(index[:9])
