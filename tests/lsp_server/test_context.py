"""What goes to the engine, and what never does."""

import pytest

from remask.contract.messages import CompletionRequest, Reason
from remask.lsp_server.context import build_request, obstacle, place_in
from remask.lsp_server.document import Document, Position
from remask.lsp_server.exclusions import Exclusions, may_hold_secrets
from remask.lsp_server.folders import Folders
from remask.lsp_server.options import ServerOptions


def document(text: str, uri: str = "file:///src/a.py") -> Document:
    return Document(uri, "python", 1, text)


def asked(doc: Document, position: Position, options: ServerOptions) -> CompletionRequest | Reason:
    reason = obstacle(doc, Exclusions(Folders()), options)
    place = reason or place_in(doc, position)
    return place if isinstance(place, Reason) else build_request(place, options)


def test_the_request_holds_both_sides_with_one_kind_of_line_end() -> None:
    request = asked(document("a\r\nb = \r\nc"), Position(1, 4), ServerOptions(max_tokens=9, deadline_ms=99))
    assert isinstance(request, CompletionRequest)
    assert (request.prefix, request.suffix) == ("a\nb = ", "\nc")
    assert (request.language, request.max_tokens, request.deadline_ms) == ("python", 9, 99)
    assert not request.name_facts, "nobody sees them in an editor, and they cost as much as a pass of the model"


def test_the_users_guide_goes_along() -> None:
    request = asked(document("a = "), Position(0, 4), ServerOptions(guide="Use pathlib."))
    assert isinstance(request, CompletionRequest)
    assert request.guide == "Use pathlib."


def test_a_document_has_one_session_however_its_uri_is_written() -> None:
    requests = [
        asked(document("", uri), Position(0, 0), ServerOptions()) for uri in ("file:///C%3A/a.py", "file:///c:/a.py")
    ]
    assert {request.document for request in requests if isinstance(request, CompletionRequest)} == {"file:///c:/a.py"}


@pytest.mark.parametrize("text", ["x" * 2_000_001, "你" * 700_000])
def test_a_document_that_is_too_large_is_refused(text: str) -> None:
    assert asked(document(text), Position(0, 0), ServerOptions()) is Reason.TOO_LARGE


@pytest.mark.parametrize("language", ["", "plaintext", "klingon", "../python"])
def test_an_unknown_language_is_refused(language: str) -> None:
    doc = Document("file:///a", language, 1, "a")
    assert asked(doc, Position(0, 0), ServerOptions()) is Reason.LANGUAGE


def test_a_document_out_of_step_is_refused() -> None:
    doc = document("a")
    doc.in_step = False
    assert asked(doc, Position(0, 0), ServerOptions()) is Reason.STALE


@pytest.mark.parametrize(
    "uri",
    [
        "file:///p/.env",
        "file:///p/.env.local",
        "file:///p/.ENV",
        "file:///p/%2Eenv",
        "file:///p/prod.env",
        "file:///p/server.pem",
        "file:///p/server.KEY",
        "file:///home/u/.ssh/config",
        "file:///home/u/.ssh/id_rsa",
        "file:///p/id_ed25519",
        "file:///p/.git/COMMIT_EDITMSG",
        "file:///c%3A/p/.aws/credentials",
        "file:///c:/p%5C.git%5Cconfig",
        "vscode-remote://host/p/.netrc",
    ],
)
def test_secrets_are_excluded(uri: str) -> None:
    assert may_hold_secrets(uri)
    assert asked(document("a", uri), Position(0, 0), ServerOptions()) is Reason.EXCLUDED


@pytest.mark.parametrize(
    "uri",
    [
        "file:///p/env.py",
        "file:///p/environment.py",
        "file:///p/keys.py",
        "file:///p/monkey.py",
        "file:///p/.github/x.py",
        "file:///git/ssh/a.py",
        "untitled:Untitled-1",
        "",
    ],
)
def test_ordinary_files_are_not(uri: str) -> None:
    assert not may_hold_secrets(uri)
