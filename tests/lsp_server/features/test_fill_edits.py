"""Where the edits of a filled function lie, whatever has become of the document since."""

from typing import Any

from lsp_client import at

from remask.lsp_server.fake_engine import FakeEngine

URI = "file:///project/a.c"
STUB = "int area(int w) {\n\n}\nint x;\n"
WISH = {"uri": URI, "position": {"line": 0, "character": 5}, "whole": True, "index": 0}
CONTENT_MODIFIED = -32801


async def started(inside: Any, answer: Any) -> Any:
    client = await inside("")
    client.engine = FakeEngine(answer)
    edits = {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}
    await client.initialize(options={"fillCandidates": 1}, capabilities={"workspace": edits})
    client.open(URI, STUB, "c")
    return client


def ranges(edit: Any) -> list[Any]:
    return [one["range"] for change in edit["documentChanges"] for one in change["edits"]]


async def test_what_the_command_returns_fits_the_text_before_its_own_edit(inside: Any) -> None:
    client = await started(inside, "int twice = w + w;\n  return twice;")

    def apply(params: Any) -> Any:
        (edit,) = params["edit"]["documentChanges"][0]["edits"]
        client.change(URI, 2, [{"range": edit["range"], "text": edit["newText"]}])
        return {"applied": True}

    client.answers["workspace/applyEdit"] = apply
    command = {"command": "remask.fill", "arguments": [WISH]}
    result = await client.request("workspace/executeCommand", command)
    (sent,) = client.sent("workspace/applyEdit")
    assert result["applied"]
    assert ranges(result["candidates"][0]["edit"]) == ranges(sent["edit"])


async def test_a_body_is_not_put_into_a_text_that_changed_without_a_version(inside: Any) -> None:
    client: Any = None

    async def answer(request: Any) -> Any:
        client.change(URI, None, [{"range": at(0, 0), "text": "int above;\n"}])
        await client.error("test/unknown")
        return await FakeEngine("return w;").complete(request)

    client = await started(inside, answer)
    assert await client.error("codeAction/resolve", {"title": "Fill", "data": WISH}) == CONTENT_MODIFIED


async def test_an_action_that_was_offered_for_an_older_text_fills_no_other_function(inside: Any) -> None:
    client = await started(inside, "return w;")
    place = WISH["position"]
    params = {"textDocument": {"uri": URI}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    (action,) = await client.request("textDocument/codeAction", params)
    client.change(URI, 2, [{"range": at(0, 0), "text": "int other(int w) {\n\n}\n"}])
    assert await client.error("codeAction/resolve", action) == CONTENT_MODIFIED
    command = {"command": "remask.fill", "arguments": [action["data"]]}
    assert await client.error("workspace/executeCommand", command) == CONTENT_MODIFIED
    assert not client.engine.requests
