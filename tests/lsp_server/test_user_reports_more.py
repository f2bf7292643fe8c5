"""What users of other completion servers reported, and the right behaviour: load, files, reasons, the popup."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsp_client import only_item

from remask.contract.messages import CompletionRequest, CompletionResult, Purpose, Reason
from remask.lsp_server import workspace
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.folders import Folders

URI = "file:///project/a.py"
INVOKED = {"triggerKind": 1}


async def started(inside: Any, answer: Any, document: str, *, uri: str = URI, **options: Any) -> Any:
    client = await inside("")
    client.engine = FakeEngine(answer)
    await client.initialize(options.pop("encodings", None), options=options)
    client.open(uri, document)
    return client


async def shown(client: Any, line: int, column: int, **context: Any) -> str | None:
    answer = await client.complete(URI, line, column, **context)
    return only_item(answer)[0] if answer else None


async def test_a_burst_on_a_slow_machine_asks_the_engine_a_few_times(inside: Any) -> None:
    """Report 23."""
    client = await started(inside, "1", "", debounceMs=5_000)
    pace = client.server.state.pace
    typed = pace.typed

    def steadily(now: float) -> None:  # however fast this machine handles the messages
        typed(now)
        pace._interval = 0.4

    pace.typed = steadily
    for _ in range(40):
        pace.answered(5.0)
    answers = []
    for number in range(60):
        client.type(URI, number + 2, 0, number, "x")
        answers.append(client.start_completion(URI, 0, number + 1)[1])
    await answers[-1]
    assert len(client.engine.requests) <= 6
    manual = await started(inside, "1", "x = ", automatic=False)
    assert await shown(manual, 0, 4) is None
    assert not manual.engine.requests


async def test_a_request_that_is_overtaken_ends_in_the_engine(inside: Any) -> None:
    """Reports 24, 25."""
    client = await inside("1")
    await client.initialize()
    client.open(URI, "# wait")
    for times in range(1, 6):
        client.start_completion(URI, 0, 6)
        await client.asked(times)
    assert client.engine.cancelled == 4
    assert client.engine.most == 1, "and one alone runs at any time"
    await client.let_go()


async def test_an_engine_that_never_answers_ends_with_the_time(inside: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report 26."""
    monkeypatch.setattr(workspace, "LATE_S", 0.0)

    async def never(_: CompletionRequest) -> CompletionResult:
        await asyncio.Event().wait()
        raise AssertionError

    client = await started(inside, never, "x = ", deadlineMs=50)
    assert await shown(client, 0, 4) is None
    await client.until(lambda: "nothing to show: deadline" in client.log)
    assert client.engine.cancelled == 1


async def test_requests_cancelled_while_they_wait_are_never_begun(inside: Any) -> None:
    """Report 27. They wait for a fill: one that came while nothing ran would begin before its cancellation is read."""
    client = await inside("")
    filling = asyncio.Event()

    async def answer(request: CompletionRequest) -> CompletionResult:
        if request.purpose is Purpose.FILL and not filling.is_set():
            filling.set()
            await client.release.wait()
        return CompletionResult(text="return 1", reason=Reason.END, language="python")

    client.engine = FakeEngine(answer)
    await client.initialize(options={"deadlineMs": 60_000})
    client.open(URI, "def f():\n    pass\n\n" + "x = \n" * 71)
    argument = {"uri": URI, "position": {"line": 1, "character": 4}, "apply": False}
    _, filled = client.start_request("workspace/executeCommand", {"command": "remask.fill", "arguments": [argument]})
    await filling.wait()
    waiting = []
    for number in range(71):
        identity, ghost = client.start_completion(URI, 3 + number, 4, **INVOKED)
        waiting.append(ghost)
        if number % 2:
            client.notify("$/cancelRequest", {"id": identity})
    await client.let_go()
    for ghost in waiting:
        await ghost
    assert (await filled)["result"]["candidates"]
    begun = [r.prefix.count("\n") - 3 for r in client.engine.requests if r.purpose is Purpose.COMPLETE]
    assert set(begun) == {70}, "of those that were not cancelled, the newest"
    assert client.engine.most == 1


@pytest.mark.parametrize(
    ("uri", "language", "wanted"),
    [
        ("untitled:Untitled-1", "python", True),
        ("vscode-notebook-cell:/n.ipynb#W1", "python", True),
        ("vscode-remote://host/a.py", "python", True),
        ("vscode-scm:git/scm0/input", "scminput", False),
        ("output:extension-output", "Log", False),
    ],
)
async def test_unsaved_files_are_completed_and_input_boxes_are_not(
    inside: Any, uri: str, language: str, wanted: bool
) -> None:
    """Report 33."""
    client = await started(inside, "1", "")
    client.open(uri, "x = ", language)
    answer = await client.complete(uri, 0, 4)
    assert bool(answer) is wanted
    if answer:
        assert answer["items"][0]["command"]["arguments"][1] == uri, "the client's own spelling"


async def test_a_drive_letter_is_the_same_however_it_is_written(inside: Any) -> None:
    """Report 34."""
    client = await started(inside, "1", "old", uri="file:///c%3A/a.py")
    client.change("file:///C:/a.py", 2, [{"text": "x = "}])
    assert only_item(await client.complete("file:///C%3a/a.py", 0, 4))[0] == "1"
    assert client.engine.requests[0].prefix == "x = "


def test_a_folder_is_not_another_whose_name_begins_alike() -> None:
    """Report 35."""
    folders = Folders()
    assert folders.holding(Path("/w/app/a.py")) is None
    for uri in ("file:///w/app", "file:///w/application", "file:///w/app/inner"):
        folders.add(uri)
    assert folders.name_of(Path("/w/application/a.py")) == "a.py"
    assert folders.name_of(Path("/w/app/b/a.py")) == "b/a.py"
    assert folders.name_of(Path("/w/app/inner/a.py")) == "a.py"
    for uri in ("file:///w/app", "file:///w/application", "file:///w/app/inner", "file:///never"):
        folders.remove(uri)
    assert folders.name_of(Path("/w/app/a.py")) == "a.py"


async def test_routing_goes_on_without_any_folder(inside: Any) -> None:
    """Report 35."""
    client = await inside("1")
    await client.initialize(folders=["file:///work"])
    event = {"added": [], "removed": [{"uri": "file:///work", "name": "work"}]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    client.open(URI, "x = ")
    assert await shown(client, 0, 4) == "1"


async def test_secrets_are_neither_completed_nor_remembered(inside: Any) -> None:
    """Report 36."""
    client = await started(inside, "abc", "x = ", context=True)
    for name in (".env", ".env.local", "server.pem", ".ssh/config"):
        uri = f"file:///project/{name}"
        client.open(uri, "TOKEN = 'secret-of-mine'\n")
        client.type(uri, 2, 0, 0, "#")
        assert await client.complete(uri, 0, 1) is None
        client.close_document(uri)
    await client.complete(URI, 0, 4, **INVOKED)
    assert "secret-of-mine" not in str(client.engine.requests)
    assert not client.engine.closed_documents, "nothing of them is saved either"


async def test_every_empty_answer_has_a_reason_that_can_be_seen(inside: Any) -> None:
    """Report 37."""
    client = await started(inside, "", "x = ", disabledLanguages=["go"])
    client.open("file:///b.go", "package b", "go")
    client.open("file:///c.txt", "text", "plaintext")
    for uri, reason in [(URI, "end"), ("file:///b.go", "disabled"), ("file:///c.txt", "language")]:
        assert await client.complete(uri, 0, 1) is None
        await client.until(lambda reason=reason: f"nothing to show: {reason}" in client.log)  # type: ignore[misc]
        assert client.sent("remask/didChangeStatus")[-1]["reason"] == reason


async def test_with_the_completion_list_open_its_entry_is_extended(inside: Any) -> None:
    """Reports 32, 38."""
    client = await started(inside, "(a)", "self.ar")
    span = {"start": {"line": 0, "character": 5}, "end": {"line": 0, "character": 7}}
    answer = await client.complete(URI, 0, 7, selectedCompletionInfo={"range": span, "text": "area"})
    assert only_item(answer) == ("area(a)", span)


async def test_a_fresh_completion_can_be_forced(inside: Any) -> None:
    """Report 39."""
    answers = iter(["first", "second"])

    async def next_one(_: CompletionRequest) -> CompletionResult:
        return CompletionResult(text=next(answers), reason=Reason.END, language="python")

    client = await started(inside, next_one, "x = ", debounce="fixed", debounceMs=1)
    assert await shown(client, 0, 4) == "first"
    assert await shown(client, 0, 4) == "first"
    assert await shown(client, 0, 4, **INVOKED) == "second"


@pytest.mark.parametrize("text", [" ", "\n", "\t\n  ", "\u3000"])
async def test_white_space_alone_is_never_shown(inside: Any, text: str) -> None:
    """Report 40."""
    client = await started(inside, text, "x =\n")
    assert await shown(client, 0, 3) is None


@pytest.mark.parametrize(
    ("offered", "agreed"), [(None, "utf-16"), (["utf-16"], "utf-16"), (["utf-8", "utf-16"], "utf-8")]
)
async def test_the_unit_of_positions_is_said(inside: Any, offered: Any, agreed: str) -> None:
    """Report 41."""
    client = await inside("1")
    assert (await client.initialize(offered))["positionEncoding"] == agreed


async def test_ghost_text_keeps_its_deadline_while_a_fill_runs(inside: Any) -> None:
    client = await inside("")
    filling = asyncio.Event()

    async def answer(request: CompletionRequest) -> CompletionResult:
        if request.purpose is Purpose.FILL and not filling.is_set():
            filling.set()
            await client.release.wait()
        return CompletionResult(text="return 1", reason=Reason.END, language="python")

    client.engine = FakeEngine(answer)
    await client.initialize(options={"deadlineMs": 50})
    client.open(URI, "def f():\n    pass\n\nx = ")
    argument = {"uri": URI, "position": {"line": 1, "character": 4}, "apply": False}
    command = {"command": "remask.fill", "arguments": [argument]}
    _, filled = client.start_request("workspace/executeCommand", command)
    await filling.wait()
    assert await client.complete(URI, 3, 4, **INVOKED) is None
    assert "nothing to show: deadline" in client.log
    assert not client.release.is_set(), "the fill still runs"
    client.release.set()
    assert (await filled)["result"]["candidates"]
    assert await client.complete(URI, 3, 4, **INVOKED)


ODD_URIS = ["untitled://[x", "file://[bad/a.py", "http://[::1/a.py", f"file:///project/{'a' * 300}.py"]


@pytest.mark.parametrize("uri", ODD_URIS)
async def test_a_document_of_any_uri_is_opened_changed_and_closed(inside: Any, uri: str) -> None:
    client = await inside("1")
    await client.initialize(options={"context": True})
    client.open(uri, "x = ")
    client.type(uri, 2, 0, 4, "y")
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    client.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await client.error("test/unknown")


async def test_a_notification_that_fails_does_not_end_the_server(inside: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await inside("1")
    await client.initialize()

    def fail(*_: Any) -> None:
        raise ValueError("anything")

    monkeypatch.setattr(client.server.state.documents, "open", fail)
    client.open("file:///a.py", "x = ")
    await client.error("test/unknown")
