"""Notebooks: cells are documents, and a cell is completed with the code of those before and after it in view.

`notebookDocument/*` is read strictly, as text_sync reads its messages. A cell's positions are its own.
"""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types

from remask.contract.errors import InputError
from remask.lsp_server import text_sync
from remask.lsp_server.documents import DocumentStore, key_of
from remask.lsp_server.reading import count, dict_of, list_of, text_of

log = logging.getLogger(__name__)


class Notebooks:
    """The order of the code cells in each open notebook."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._cells: dict[str, list[str]] = {}  # notebook -> URIs of its cells, code and text

    def handle(self, method: str, params: object) -> None:
        """Carry out a `notebookDocument/*` notification. Never raises for what a client sends."""
        try:
            values = dict_of(params)
            key = key_of(text_of(dict_of(values.get("notebookDocument")).get("uri")))
            if method == types.NOTEBOOK_DOCUMENT_DID_OPEN:
                self._open(key, values)
            elif method == types.NOTEBOOK_DOCUMENT_DID_CHANGE:
                self._change(key, dict_of(dict_of(values.get("change", {})).get("cells", {})))
            elif method == types.NOTEBOOK_DOCUMENT_DID_CLOSE:
                for cell in self._cells.pop(key, []):
                    self._documents.close(cell)
        except InputError:
            log.error("a %s cannot be read; its notebook is out of step until it is opened again", method)

    def around(self, uri: str) -> tuple[str, str]:
        """The code before and after a cell, in its language, each joined to it by a line end."""
        key = key_of(uri)
        for cells in self._cells.values():
            keys = [key_of(cell) for cell in cells]
            if key in keys:
                at = keys.index(key)
                before, after = self._texts(cells[:at], uri), self._texts(cells[at + 1 :], uri)
                return "".join(f"{text}\n" for text in before), "".join(f"\n{text}" for text in after)
        return "", ""

    def _texts(self, cells: list[str], uri: str) -> list[str]:
        own = self._documents.get(uri)
        found = (self._documents.get(cell) for cell in cells)
        return [one.normalised for one in found if one is not None and own is not None and one.language == own.language]

    def _open(self, key: str, values: dict[str, Any]) -> None:
        cells = list_of(dict_of(values["notebookDocument"]).get("cells", []))
        self._cells[key] = [text_of(dict_of(cell).get("document")) for cell in cells]
        self._open_texts(list_of(values.get("cellTextDocuments", [])))

    def _change(self, key: str, cells: dict[str, Any]) -> None:
        try:
            if "structure" in cells:
                self._restructure(key, dict_of(cells["structure"]))
        finally:  # what cannot be read of the cells' order takes nothing from their texts
            self._change_texts(key, cells.get("textContent", []))

    def _change_texts(self, key: str, changes: object) -> None:
        try:
            for change in list_of(changes):
                values = dict_of(change)
                params = {"textDocument": values.get("document"), "contentChanges": values.get("changes")}
                text_sync.handle(self._documents, types.TEXT_DOCUMENT_DID_CHANGE, params)
        except InputError:  # it may have been about any of them
            for cell in self._cells.get(key, []):
                self._documents.distrust(cell)
            raise

    def _restructure(self, key: str, structure: dict[str, Any]) -> None:
        array = dict_of(structure.get("array"))
        start, gone = count(array.get("start")), count(array.get("deleteCount"))
        new = [text_of(dict_of(cell).get("document")) for cell in list_of(array.get("cells") or [])]
        self._cells.setdefault(key, [])[start : start + gone] = new
        self._open_texts(list_of(structure.get("didOpen") or []))
        for item in list_of(structure.get("didClose") or []):
            self._documents.close(text_of(dict_of(item).get("uri")))

    def _open_texts(self, items: list[Any]) -> None:
        for item in items:
            text_sync.handle(self._documents, types.TEXT_DOCUMENT_DID_OPEN, {"textDocument": item})
