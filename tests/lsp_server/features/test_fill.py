"""Function fill-in over the protocol: offered, written with progress, checked, edited with a version."""

from typing import Any

import pytest

from remask.contract.messages import Candidate, CompletionRequest, CompletionResult, Extent, Purpose, Reason
from remask.lsp_server.fake_engine import FakeEngine

URI = "file:///project/a.py"
CONTENT_MODIFIED, CANCELLED, INVALID_PARAMS = -32801, -32800, -32602
STUB = '"""😀"""\r\n\r\n\r\ndef area(w, h):\r\n    """The area."""\r\n    pass\r\n\r\n\r\nx = 1\r\n'
RESOLVES = {
    "textDocument": {
        "inlineCompletion": {},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor"]}},
            "resolveSupport": {"properties": ["edit"]},
            "dataSupport": True,
        },
    },
    "window": {"workDoneProgress": True},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
    },
}


async def started(
    inside: Any,
    answer: Any,
    capabilities: Any = RESOLVES,
    text: str = STUB,
    drafts: tuple[str, ...] = (),
    **options: Any,
) -> Any:
    client = await inside("")
    client.engine = FakeEngine(answer, drafts)
    await client.initialize(options=options, capabilities=capabilities)
    client.open(URI, text)
    return client


def action_params(line: int = 5, character: int = 4, **context: Any) -> dict[str, Any]:
    place = {"line": line, "character": character}
    span = {"start": place, "end": place}
    return {"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": [], **context}}


async def actions(client: Any, **context: Any) -> list[Any]:
    return list(await client.request("textDocument/codeAction", action_params(**context)) or [])


async def several(request: CompletionRequest) -> CompletionResult:
    others = (
        Candidate("return h * w", score=-2.0),
        Candidate("return (", score=0.0),
        Candidate("return w + h", score=-0.5),
    )
    return CompletionResult(
        text="return w * h", reason=Reason.BLOCK, language=request.language, score=-1.0, others=others
    )


async def test_a_body_is_offered_and_resolved_to_a_versioned_edit(inside: Any) -> None:
    client = await started(inside, "return w * h", fillCandidates=1)
    (action,) = await actions(client)
    assert (action["title"], action["kind"]) == ("Fill function body", "refactor.rewrite.fill")
    assert "edit" not in action
    assert "command" not in action
    resolved = await client.request("codeAction/resolve", action)
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    (edit,) = change["edits"]
    assert edit["newText"] == "return w * h"
    assert edit["range"] == {"start": {"line": 5, "character": 4}, "end": {"line": 5, "character": 8}}
    assert resolved["edit"]["changeAnnotations"][edit["annotationId"]] == {
        "label": "Fill area",
        "needsConfirmation": True,
    }
    (request,) = client.engine.requests
    assert (request.purpose, request.extent, request.max_tokens) == (Purpose.FILL, Extent.BLOCK, 256)
    assert request.prefix.endswith('"""The area."""\n    ')
    assert request.suffix == "\n\n\nx = 1\n"


@pytest.mark.parametrize("broken", ["(", "{", "\\\n"])
async def test_a_text_so_broken_that_looking_takes_too_long_is_offered_nothing(
    inside: Any, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setattr("remask.grammars.bounded.PARSE_WITHIN_S", 0.0)
    monkeypatch.setattr("remask.grammars.bounded.QUERY_WITHIN_S", 0.0)
    client = await started(inside, "return w * h", text=broken * 5_000 + STUB)
    assert await actions(client) == []


async def test_candidates_are_ranked_and_offered_one_by_one(inside: Any) -> None:
    client = await started(inside, several)
    (action,) = await actions(client)
    await client.request("codeAction/resolve", action)
    offered = await actions(client)
    assert [one["title"] for one in offered] == [f"Fill function body: candidate {n} of 3" for n in (1, 2, 3)]
    texts = []
    for one in offered:
        resolved = await client.request("codeAction/resolve", one)
        texts.append(resolved["edit"]["documentChanges"][0]["edits"][0]["newText"])
    assert texts == ["return w + h", "return w * h", "return h * w"], "by score, and what does not parse is not shown"
    assert len(client.engine.requests) == 1, "they were ready"
    client.type(URI, 2, 8, 0, "y")
    assert len(await actions(client)) == 1, "another version is another task"


async def test_white_space_that_comes_before_the_code_is_left_out(inside: Any) -> None:
    client = await started(inside, "  \treturn w * h")
    (action,) = await actions(client)
    resolved = await client.request("codeAction/resolve", action)
    assert resolved["edit"]["documentChanges"][0]["edits"][0]["newText"] == "return w * h"


async def test_fewer_candidates_than_wanted_are_never_made_up(inside: Any) -> None:
    client = await started(inside, "return w * h")
    (action,) = await actions(client)
    await client.request("codeAction/resolve", action)
    assert len(await actions(client)) == 1


async def test_the_engine_is_asked_once_more_only_if_nothing_may_be_shown(inside: Any) -> None:
    client = await started(inside, "return w * h")
    (action,) = await actions(client)
    assert (await client.request("codeAction/resolve", action))["edit"]
    assert [request.policy for request in client.engine.requests] == ["default"]
    client = await started(inside, "return (")
    (action,) = await actions(client)
    await client.request("codeAction/resolve", action)
    assert [request.policy for request in client.engine.requests] == ["default", "parallel"]


async def test_a_client_that_resolves_nothing_gets_a_command(inside: Any) -> None:
    bare: dict[str, Any] = {"workspace": {"applyEdit": True}}
    client = await started(inside, "return w * h", bare)
    client.answers["workspace/applyEdit"] = {"applied": True}
    (action,) = await actions(client)
    command = action["command"]
    assert command["command"] == "remask.fill"
    params = {"command": command["command"], "arguments": command["arguments"]}
    result = await client.request("workspace/executeCommand", params)
    assert result["applied"] is True
    (sent,) = client.sent("workspace/applyEdit")
    assert sent["edit"]["changes"][URI][0]["newText"] == "return w * h"


async def test_the_command_returns_candidates_for_an_editors_own_picker(inside: Any) -> None:
    client = await started(inside, several)
    argument = {"uri": URI, "position": {"line": 5, "character": 4}, "apply": False}
    result = await client.request("workspace/executeCommand", {"command": "remask.fill", "arguments": [argument]})
    assert [one["text"] for one in result["candidates"]] == ["return w + h", "return w * h", "return h * w"]
    assert not client.sent("workspace/applyEdit")
    assert result["candidates"][0]["edit"]["documentChanges"][0]["textDocument"]["version"] == 1


async def test_progress_shows_the_draft_as_it_is_written(inside: Any) -> None:
    client = await started(inside, "return w * h", drafts=("return", "if w:\n    return w *"), fillCandidates=1)
    (action,) = await actions(client)
    await client.request("codeAction/resolve", action)
    values = [one["value"] for one in client.sent("$/progress")]
    assert [value["kind"] for value in values] == ["begin", "report", "report", "end"]
    assert values[0]["title"] == "Remask: filling area"
    assert values[0]["cancellable"] is True
    assert [value["message"] for value in values[1:3]] == ["return", "return w *"]
    drafts = client.sent("remask/didWriteDraft")
    assert [one["text"] for one in drafts] == ["", "    return", "    if w:\n    return w *", ""], "whole lines"
    assert [one.get("done", False) for one in drafts] == [False, False, False, True]
    for one in drafts:
        assert one["position"] == {"line": 5, "character": 4}
        assert one["token"] == client.sent("$/progress")[0]["token"]


async def test_a_draft_of_spaces_is_shown_as_a_file_of_tabs_has_it(inside: Any) -> None:
    text = STUB.replace("    ", "\t")
    body = "if w:\n\t\treturn w"
    client = await started(inside, body, text=text, drafts=("    if w:\n            return w",), fillCandidates=1)
    (action,) = await actions(client)
    await client.request("codeAction/resolve", action)
    assert [one["text"] for one in client.sent("remask/didWriteDraft")] == ["", f"\t{body}", ""]


async def waits(client: Any, method: str = "codeAction/resolve", params: Any = None) -> Any:
    (action,) = await actions(client)
    number, answer = client.start_request(method, params or action)
    await client.until(lambda: client.sent("$/progress"))
    await client.error("test/unknown")
    return number, answer


async def never(request: CompletionRequest) -> CompletionResult:
    import asyncio

    await asyncio.Event().wait()
    raise AssertionError


async def test_the_user_cancels_the_progress(inside: Any) -> None:
    client = await started(inside, never)
    _, answer = await waits(client)
    client.notify("window/workDoneProgress/cancel", {"token": client.sent("$/progress")[0]["token"]})
    assert "edit" not in (await answer)["result"]
    assert client.engine.cancelled == 1
    assert not client.windows, "the user knows"


async def test_the_client_cancels_the_request(inside: Any) -> None:
    client = await started(inside, never)
    number, answer = await waits(client)
    client.notify("$/cancelRequest", {"id": number})
    assert (await answer)["error"]["code"] == CANCELLED
    await client.until(lambda: client.sent("$/progress")[-1]["value"]["kind"] == "end")
    assert client.engine.cancelled == 1


@pytest.mark.parametrize("method", ["$/cancelRequest", "shutdown"])
async def test_a_command_ends_with_its_request(inside: Any, method: str) -> None:
    client = await started(inside, never)
    argument = {"uri": URI, "position": {"line": 5, "character": 4}}
    command = {"command": "remask.fill", "arguments": [argument]}
    number, answer = await waits(client, "workspace/executeCommand", command)
    if method == "shutdown":
        assert await client.request(method) is None
    else:
        client.notify(method, {"id": number})
    assert (await answer)["error"]["code"] == CANCELLED
    await client.until(lambda: client.sent("$/progress")[-1]["value"]["kind"] == "end")
    assert client.engine.cancelled == 1
    assert not client.windows


async def test_a_document_that_changes_meanwhile_gets_no_edit(inside: Any) -> None:
    client = await inside("return w * h")
    await client.initialize(capabilities=RESOLVES)
    client.open(URI, "def f(w, h): # wait\n    pass\n")
    client.engine._answer = lambda request: client._complete(request)
    action = (await client.request("textDocument/codeAction", action_params(1)))[0]
    client.release.clear()
    original = client.engine._answer

    async def slowly(request: CompletionRequest) -> CompletionResult:
        await client.release.wait()
        result: CompletionResult = await original(request)
        return result

    client.engine._answer = slowly
    _, answer = client.start_request("codeAction/resolve", action)
    await client.until(lambda: client.sent("$/progress"))
    client.type(URI, 2, 0, 0, "x = 1\n")
    await client.let_go()
    assert (await answer)["error"]["code"] == CONTENT_MODIFIED


@pytest.mark.parametrize("text", ["return (", "pass", "", "return 1\nx = 3"])
async def test_what_does_not_hold_is_never_an_edit(inside: Any, text: str) -> None:
    client = await started(inside, text)
    (action,) = await actions(client)
    assert "edit" not in await client.request("codeAction/resolve", action)
    assert client.windows[0].startswith("Remask has nothing to fill in.")


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [("", Reason.DEADLINE, "deadline"), ("", Reason.END, "empty"), ("return (", Reason.END, "syntax")],
)
async def test_the_command_says_why_there_is_nothing(inside: Any, text: str, reason: Reason, said: str) -> None:
    async def answer(request: CompletionRequest) -> CompletionResult:
        return CompletionResult(text=text, reason=reason, language=request.language)

    client = await started(inside, answer)
    argument = {"uri": URI, "position": {"line": 5, "character": 4}, "apply": False}
    result = await client.request("workspace/executeCommand", {"command": "remask.fill", "arguments": [argument]})
    assert (result["candidates"], result["reason"]) == ([], said)


async def test_where_nothing_is_offered(inside: Any) -> None:
    client = await started(inside, "return 1")
    assert not await client.request("textDocument/codeAction", action_params(8, 0))
    assert not await actions(client, only=["quickfix"])
    assert await actions(client, only=["refactor"])
    assert await actions(client, only=["refactor.rewrite.fill"])
    assert not await client.request(
        "textDocument/codeAction", {**action_params(), "textDocument": {"uri": "file:///none.py"}}
    )
    client.open("file:///project/.env", STUB)
    assert not await client.request(
        "textDocument/codeAction", {**action_params(), "textDocument": {"uri": "file:///project/.env"}}
    )


@pytest.mark.parametrize("arguments", [[], [5], [{}], [{"uri": URI, "position": {"line": -1, "character": 0}}], None])
async def test_a_command_that_cannot_be_read_is_an_error(inside: Any, arguments: Any) -> None:
    client = await started(inside, "return 1")
    assert (
        await client.error("workspace/executeCommand", {"command": "remask.fill", "arguments": arguments})
        == INVALID_PARAMS
    )
    assert await client.error("workspace/executeCommand", {"command": "remask.unknown"}) == INVALID_PARAMS
    assert (await client.error("codeAction/resolve", {"title": "x", "data": arguments})) == INVALID_PARAMS


async def test_a_fill_is_not_thrown_away_by_typing_elsewhere(inside: Any) -> None:
    client = await inside("return 1")
    await client.initialize(capabilities=RESOLVES)
    client.open(URI, "def f():\n    pass\n")
    client.open("file:///b.py", "y = ")

    async def slowly(request: CompletionRequest) -> CompletionResult:
        if request.purpose is Purpose.FILL:
            await client.release.wait()
        return CompletionResult(text="return 1", reason=Reason.END, language="python")

    client.engine._answer = slowly
    (action,) = await client.request("textDocument/codeAction", action_params(1))
    _, answer = client.start_request("codeAction/resolve", action)
    await client.until(lambda: client.sent("$/progress"))
    _, ghost = client.start_completion("file:///b.py", 0, 4)
    await client.let_go()
    assert "edit" in (await answer)["result"]
    assert (await ghost)["result"]["items"]
    assert client.engine.most == 1


async def test_nothing_is_filled_in_a_file_of_declarations(inside: Any) -> None:
    client = await started(inside, "return 1")
    client.open("file:///project/a.pyi", STUB)
    params = {**action_params(), "textDocument": {"uri": "file:///project/a.pyi"}}
    assert not await client.request("textDocument/codeAction", params)
    assert await actions(client)


@pytest.mark.parametrize(
    ("uri", "text"), [(URI, "x = 1\n"), (URI, "def f():\n    return 1\n"), (f"{URI}i", "def f(): ...\n")]
)
@pytest.mark.parametrize("whole", [True, False])
async def test_the_command_says_that_there_is_no_empty_function(inside: Any, uri: str, text: str, whole: bool) -> None:
    client = await started(inside, "return 1")
    client.open("file:///other/" + uri.rpartition("/")[2], text)
    argument = {
        "uri": "file:///other/" + uri.rpartition("/")[2],
        "position": {"line": 0, "character": 4},
        "whole": whole,
    }
    result = await client.request("workspace/executeCommand", {"command": "remask.fill", "arguments": [argument]})
    assert (result["candidates"], result["reason"]) == ([], "no_stub")
    assert "There is no empty function here." in client.windows[-1]
    assert not client.engine.requests
