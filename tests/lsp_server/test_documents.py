"""Documents are found however a client spells their URI."""

import pytest

from remask.lsp_server.document import Change
from remask.lsp_server.documents import DocumentStore, key_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///c%3A/x/a.py", "file:///c:/x/a.py"),
        ("file:///C:/x/a.py", "file:///c:/x/a.py"),
        ("file:///home/a%20b.py", "file:///home/a b.py"),
        ("file:///home/%C3%A9.py", "file:///home/é.py"),
    ],
)
def test_spellings_of_one_uri_are_one_document(one: str, other: str) -> None:
    store = DocumentStore()
    document = store.open(one, "python", 1, "a")
    assert store.get(other) is document
    assert document.uri == one, "the client's own spelling is kept"
    store.close(other)
    assert store.get(one) is None


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "vscode-notebook-cell:/a.ipynb#W0", "file:///", "", "%", "file://[x", "a://[::1/"]
)
def test_any_uri_will_do(uri: str) -> None:
    store = DocumentStore()
    store.open(uri, "python", 1, "a")
    store.open(uri, "python", 1, "b")
    assert len(store) == 1
    assert store.get(uri).text == "b"  # type: ignore[union-attr]


def test_capital_letters_count_outside_the_drive() -> None:
    assert key_of("file:///home/A.py") != key_of("file:///home/a.py")


def test_a_document_that_is_not_open_is_no_error() -> None:
    store = DocumentStore()
    store.change("file:///a.py", 2, [Change("x")])
    store.close("file:///a.py")
    store.distrust("file:///a.py")
    assert store.get("file:///a.py") is None
