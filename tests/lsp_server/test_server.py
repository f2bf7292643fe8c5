"""The server's answers, over pipes, with an engine in the test's hands."""

from typing import Any

import pytest
from lsp_client import at, completion, only_item

URI = "file:///project/a.py"
CANCELLED = -32800
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, NOT_INITIALIZED = -32600, -32601, -32602, -32002


async def started(inside: Any, text: str, document: str) -> Any:
    client = await inside(text)
    await client.initialize()
    client.open(URI, document)
    return client


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encodings", "agreed", "column"),
    [(None, "utf-16", 9), (["utf-8", "utf-16"], "utf-8", 13), (["utf-32"], "utf-32", 8), (["latin-1"], "utf-16", 9)],
)
async def test_columns_count_what_was_agreed_on(inside: Any, encodings: Any, agreed: str, column: int) -> None:
    client = await inside("1")
    capabilities = await client.initialize(encodings)
    assert capabilities["positionEncoding"] == agreed
    assert "inlineCompletionProvider" in capabilities
    assert capabilities["textDocumentSync"] == {"openClose": True, "change": 2, "save": {"includeText": True}}
    client.open(URI, "x='你😀'= ")
    assert only_item(await client.complete(URI, 0, column)) == ("1", at(0, column))


async def test_typing_in_a_crlf_file_with_form_feeds(inside: Any) -> None:
    client = await started(inside, "1", "a = 0\r\n\f\r\nb =\r\nc = 2\r\n")
    client.type(URI, 2, 2, 3, " ")
    assert only_item(await client.complete(URI, 2, 4)) == ("1", at(2, 4))


async def test_a_position_past_the_line_is_its_end(inside: Any) -> None:
    client = await started(inside, "1", "x = \n")
    assert only_item(await client.complete(URI, 0, 99)) == ("1", at(0, 4))
    assert only_item(await client.complete(URI, 99, 99)) == ("1", at(1, 0))


async def test_what_stands_after_the_cursor_is_trimmed(inside: Any) -> None:
    client = await started(inside, "a, b)", "f(q)")
    assert only_item(await client.complete(URI, 0, 3)) == ("a, b", at(0, 3))


@pytest.mark.parametrize(
    ("answer", "document", "reason"),
    [
        ("", "x = ", "end"),
        (" \n", "x = ", "empty"),
        (")", "f()", "duplicate"),
        ("y" * 5_001, "", "too_large"),
        ("😀" * 2_501, "", "too_large"),
    ],
)
async def test_nothing_to_show_has_a_reason(inside: Any, answer: str, document: str, reason: str) -> None:
    client = await started(inside, answer, document)
    assert await client.complete(URI, 0, len(document) - document.count(")")) is None
    await client.until(lambda: f"nothing to show: {reason}" in client.log)


async def test_neovim_is_told_to_take_its_ghost_text_away(inside: Any) -> None:
    client = await inside(" ")
    await client.initialize(name="Neovim")
    client.open(URI, "x = # wait")
    assert await client.complete("file:///not/open.py", 0, 0) == {"items": []}
    _, overtaken = client.start_completion(URI, 0, 10)
    _, answer = client.start_completion(URI, 0, 10)
    assert (await overtaken)["result"] is None
    await client.let_go()
    assert (await answer)["result"] == {"items": []}


async def test_five_thousand_units_are_shown(inside: Any) -> None:
    client = await started(inside, "😀" * 2_500, "")
    assert only_item(await client.complete(URI, 0, 0))[0] == "😀" * 2_500


async def test_documents_that_are_not_completed(inside: Any) -> None:
    client = await started(inside, "1", "x")
    for uri, language, text, reason in [
        ("file:///project/.env", "python", "KEY=", "excluded"),
        ("file:///project/x.kl", "klingon", "x", "language"),
        ("file:///project/large.py", "python", "x = 1\n" * 900_000, "too_large"),
    ]:
        client.open(uri, text, language)
        assert await client.complete(uri, 0, 0) is None
        await client.until(lambda reason=reason: f"nothing to show: {reason}" in client.log)  # type: ignore[misc]
    assert await client.complete("file:///never/opened.py", 0, 0) is None
    await client.until(lambda: "nothing to show: unknown_document" in client.log)
    client.close_document(URI)
    assert await client.complete(URI, 0, 0) is None


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "vscode-notebook-cell:/n.ipynb#W1", "file:///C%3A/a.py"])
async def test_the_kinds_of_uri(inside: Any, uri: str) -> None:
    client = await started(inside, "1", "")
    client.open(uri, "x = ")
    assert only_item(await client.complete(uri, 0, 4)) == ("1", at(0, 4))


# --- requests that overlap ------------------------------------------------------------------------------------------


async def test_a_newer_request_takes_the_place_of_an_older_one(inside: Any) -> None:
    client = await started(inside, "1", "x = # wait")
    _, older = client.start_completion(URI, 0, 10)
    await client.asked(1)
    _, newer = client.start_completion(URI, 0, 10)
    assert (await older)["result"] is None
    await client.asked(2)
    assert client.engine.cancelled == 1
    await client.let_go()
    assert only_item((await newer)["result"])[0] == "1"
    await client.until(lambda: "nothing to show: cancelled" in client.log)


async def test_a_request_in_another_document_is_the_newest_too(inside: Any) -> None:
    client = await started(inside, "1", "x = # wait")
    client.open("file:///b.py", "y = ")
    _, waiting = client.start_completion(URI, 0, 10)
    await client.asked(1)
    assert only_item(await client.complete("file:///b.py", 0, 4))[0] == "1"
    assert (await waiting)["result"] is None, "there is one cursor"


async def test_the_client_cancels(inside: Any) -> None:
    client = await started(inside, "1", "x = # wait")
    number, answer = client.start_completion(URI, 0, 10)
    await client.asked(1)
    client.notify("$/cancelRequest", {"id": number})
    assert (await answer)["error"]["code"] == CANCELLED
    assert client.engine.cancelled == 1
    client.notify("$/cancelRequest", {"id": number})  # once more, after the answer
    client.notify("$/cancelRequest", {"id": 12_345})
    await client.let_go()
    assert only_item(await client.complete(URI, 0, 10))[0] == "1"


async def test_a_burst_of_keystrokes_leaves_one_request(inside: Any) -> None:
    client = await started(inside, "1", "x = # wait")
    answers = []
    for version in range(2, 52):
        client.type(URI, version, 0, 10, "!")
        answers.append(client.start_completion(URI, 0, 11)[1])
    await client.let_go()
    shown = [(await answer)["result"] for answer in answers]
    assert [only_item(result)[0] for result in shown if result] == ["1"]
    assert shown[-1] is not None


# --- documents that move on -----------------------------------------------------------------------------------------


async def waiting_answer(inside: Any, text: str) -> tuple[Any, Any]:
    client = await started(inside, text, "# wait\r\nend")
    _, answer = client.start_completion(URI, 0, 6)
    await client.asked(1)
    return client, answer


@pytest.mark.parametrize(
    ("typed", "rest", "place"),
    [("a", "b\nc", (0, 7)), ("ab", "\nc", (0, 8)), ("ab\r\n", "c", (1, 0))],
)
async def test_the_beginning_of_the_answer_typed_meanwhile(
    inside: Any, typed: str, rest: str, place: tuple[int, int]
) -> None:
    client, answer = await waiting_answer(inside, "ab\nc")
    client.type(URI, 2, 0, 6, typed)
    await client.let_go()
    assert only_item((await answer)["result"]) == (rest, at(*place))


@pytest.mark.parametrize(
    ("line", "column", "typed", "reason"),
    [(0, 6, "x", "stale"), (1, 0, "a", "stale"), (0, 0, "a", "stale"), (0, 6, "ab\nc", "empty")],
)
async def test_anything_else_typed_meanwhile(inside: Any, line: int, column: int, typed: str, reason: str) -> None:
    client, answer = await waiting_answer(inside, "ab\nc")
    client.type(URI, 2, line, column, typed)
    await client.let_go()
    assert (await answer)["result"] is None
    await client.until(lambda: f"nothing to show: {reason}" in client.log)


async def test_a_document_closed_or_opened_anew_meanwhile(inside: Any) -> None:
    client, answer = await waiting_answer(inside, "ab")
    client.close_document(URI)
    client.open(URI, "# wait\r\nend")
    await client.let_go()
    assert (await answer)["result"] is None


async def test_a_change_that_cannot_be_read_silences_its_document(inside: Any) -> None:
    client = await started(inside, "1", "x = ")
    client.change(URI, 2, [{"range": at(0, 0)}])
    assert await client.complete(URI, 0, 4) is None
    client.change(URI, 3, [{"text": "yy = "}])
    assert only_item(await client.complete(URI, 0, 5)) == ("1", at(0, 5))


# --- a bad client ---------------------------------------------------------------------------------------------------


async def test_messages_that_cannot_be_read(inside: Any) -> None:
    client = await started(inside, "1", "x = ")
    for body in (b"{", b"[]", b"null", b"\xff\xfe", b'{"jsonrpc":"1.0"}', b'{"jsonrpc":"2.0"}', b"[" * 100_000):
        client.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    client.write(b"noise\r\n\r\ncontent-length: 2\r\nContent-Type: x\r\n\r\n{}")
    client.notify("textDocument/unheardOf", {"a": 1})
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.send(id=77, result={"of": "nothing we asked"})
    client.send(id=78, error={"code": 1, "message": "m"})
    assert await client.error("textDocument/inlineCompletion", {"position": 5}) == INVALID_PARAMS
    assert await client.error("textDocument/inlineCompletion") == INVALID_PARAMS
    assert await client.error("textDocument/hover", {}) in (METHOD_NOT_FOUND, INVALID_PARAMS)
    assert await client.error("custom/thing", {}) == METHOD_NOT_FOUND
    assert only_item(await client.complete(URI, 0, 4))[0] == "1"
    assert not client.windows, "no window pops up"


async def test_an_engine_that_raises_is_an_error_answer_and_no_window(inside: Any) -> None:
    client = await started(inside, "1", "# raise")
    assert await client.error("textDocument/inlineCompletion", completion(URI, 0, 7)) < 0
    client.open("file:///b.py", "x = ")
    assert only_item(await client.complete("file:///b.py", 0, 4))[0] == "1"
    assert not client.windows
    assert "secret" not in client.log


async def test_options_that_are_wrong_are_said_once_in_a_sentence(inside: Any) -> None:
    client = await inside("1")
    await client.initialize(options={"maxTokens": "many"})
    client.open(URI, "x = ")
    assert only_item(await client.complete(URI, 0, 4))[0] == "1"
    (message,) = client.windows
    assert "'maxTokens' is a whole number" in message


# --- the life cycle -------------------------------------------------------------------------------------------------


async def test_requests_outside_the_life_cycle_get_an_error(inside: Any) -> None:
    client = await inside("1")
    client.open(URI, "x")
    assert await client.error("textDocument/inlineCompletion", completion(URI, 0, 1)) == NOT_INITIALIZED
    await client.initialize()
    assert await client.error("initialize", {"processId": None, "capabilities": {}}) == INVALID_REQUEST
    await client.request("shutdown")
    assert await client.error("textDocument/inlineCompletion", completion(URI, 0, 1)) == INVALID_REQUEST


async def test_many_documents_opened_and_closed(inside: Any) -> None:
    client = await started(inside, "1", "x = ")
    for number in range(500):
        uri = f"file:///{number}.py"
        client.open(uri, "y = 1\n" * 100)
        client.close_document(uri)
    assert only_item(await client.complete(URI, 0, 4))[0] == "1"
