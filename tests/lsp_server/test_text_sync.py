"""A message that cannot be read changes nothing, and its document is not trusted until its whole text comes."""

from typing import Any

import pytest

from remask.lsp_server import text_sync
from remask.lsp_server.documents import DocumentStore

URI = "file:///a.py"
AT = {"line": 0, "character": 0}
HERE = {"start": AT, "end": AT}


@pytest.fixture
def store() -> DocumentStore:
    documents = DocumentStore()
    item = {"uri": URI, "languageId": "python", "version": 1, "text": "a\nb"}
    text_sync.handle(documents, "textDocument/didOpen", {"textDocument": item})
    return documents


def change(store: DocumentStore, *events: Any, version: Any = 2) -> None:
    params = {"textDocument": {"uri": URI, "version": version}, "contentChanges": list(events)}
    text_sync.handle(store, "textDocument/didChange", params)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"text": None},
        {"text": 5, "range": HERE},
        {"range": HERE},
        {"text": "x", "range": {"start": AT}},
        {"text": "x", "range": "all"},
        {"text": "x", "range": {"start": {"line": -1, "character": 0}, "end": AT}},
        {"text": "x", "range": {"start": {"line": 0.5, "character": 0}, "end": AT}},
        {"text": "x", "range": {"start": {"line": True, "character": 0}, "end": AT}},
        "x",
        None,
    ],
)
def test_a_malformed_change_loses_no_text(store: DocumentStore, event: Any) -> None:
    change(store, {"text": "y", "range": HERE}, event)
    document = store.get(URI)
    assert document is not None
    assert (document.text, document.version, document.in_step) == ("a\nb", 1, False)
    change(store, {"text": "the whole"}, version=3)
    assert (document.text, document.version, document.in_step) == ("the whole", 3, True)


@pytest.mark.parametrize("event", [{"text": "x"}, {"text": "x", "range": None}])
def test_a_change_without_a_range_is_the_whole_text(store: DocumentStore, event: Any) -> None:
    change(store, event)
    assert store.get(URI).text == "x"  # type: ignore[union-attr]


def test_the_deprecated_length_and_a_missing_version_are_fine(store: DocumentStore) -> None:
    change(store, {"text": "x", "range": HERE, "rangeLength": 0}, version=None)
    document = store.get(URI)
    assert document is not None
    assert (document.text, document.version, document.in_step) == ("xa\nb", 1, True)


@pytest.mark.parametrize("params", [None, {}, [], {"textDocument": {}}, {"textDocument": {"uri": 5}}])
@pytest.mark.parametrize("method", text_sync.METHODS)
def test_nonsense_is_no_error(store: DocumentStore, method: str, params: Any) -> None:
    text_sync.handle(store, method, params)
    assert store.get(URI).text == "a\nb"  # type: ignore[union-attr]


def test_a_huge_line_number_is_clamped(store: DocumentStore) -> None:
    far = {"line": 2**31, "character": 2**31}
    change(store, {"text": "!", "range": {"start": far, "end": far}})
    assert store.get(URI).text == "a\nb!"  # type: ignore[union-attr]
