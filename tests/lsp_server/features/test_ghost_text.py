"""Ghost text as people expect it: reused while typed, prepared ahead, several on demand, extending what is selected."""

from __future__ import annotations

from typing import Any

import pytest
from lsp_client import at, only_item

from remask.contract.messages import Candidate, CompletionRequest, CompletionResult, Extent, Purpose, Reason
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.statistics import read_statistics

URI = "file:///project/a.py"
INVOKED = {"triggerKind": 1}


async def started(inside: Any, answer: Any, document: str, **options: Any) -> Any:
    client = await inside("")
    client.engine = FakeEngine(answer)
    await client.initialize(options=options)
    client.open(URI, document)
    return client


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


# --- typed as suggested ---------------------------------------------------------------------------------------------


async def test_typing_the_text_asks_the_engine_once(inside: Any) -> None:
    client = await started(inside, "first + second", "x = \r\nend")
    await client.complete(URI, 0, 4)
    for number, letter in enumerate("first + secon"):
        client.type(URI, 2 + number, 0, 4 + number, letter)
        rest = "first + second"[number + 1 :]
        assert only_item(await client.complete(URI, 0, 5 + number)) == (rest, at(0, 5 + number))
    assert len(client.engine.requests) == 1


async def test_accepting_a_word_or_a_line_leaves_the_rest(inside: Any) -> None:
    client = await started(inside, "if a:\n    return b", "")
    await client.complete(URI, 0, 0)
    client.type(URI, 2, 0, 0, "if ")
    assert only_item(await client.complete(URI, 0, 3))[0] == "a:\n    return b"
    client.type(URI, 3, 0, 3, "a:\n")
    assert only_item(await client.complete(URI, 1, 0))[0] == "    return b"
    assert len(client.engine.requests) == 1


async def test_typing_it_to_its_end_offers_no_empty_text(inside: Any) -> None:
    answers = iter(["ab", ""])

    async def once(request: CompletionRequest) -> CompletionResult:
        return CompletionResult(text=next(answers), reason=Reason.EMPTY, language="python")

    client = await started(inside, once, "x = ")
    await client.complete(URI, 0, 4)
    client.type(URI, 2, 0, 4, "ab")
    assert await client.complete(URI, 0, 6) is None


async def test_an_edit_elsewhere_asks_anew(inside: Any) -> None:
    client = await started(inside, "ab", "x = \nend")
    await client.complete(URI, 0, 4)
    client.type(URI, 2, 1, 3, "!")
    await client.complete(URI, 0, 4)
    assert len(client.engine.requests) == 2


async def test_asking_by_hand_always_asks_the_engine(inside: Any) -> None:
    client = await started(inside, "ab", "x = ")
    await client.complete(URI, 0, 4)
    await client.complete(URI, 0, 4)
    assert len(client.engine.requests) == 1
    await client.complete(URI, 0, 4, **INVOKED)
    assert len(client.engine.requests) == 2


async def nothing_by_hand(request: CompletionRequest) -> CompletionResult:
    if request.candidates > 1:
        return CompletionResult(text="", reason=Reason.DEADLINE, language="python")
    return CompletionResult(text="ready long before", reason=Reason.LINE, language="python")


async def test_a_list_that_is_not_ready_in_time_leaves_what_was_offered_there(inside: Any) -> None:
    client = await started(inside, nothing_by_hand, "x = ")
    assert only_item(await client.complete(URI, 0, 4))[0] == "ready long before"
    assert only_item(await client.complete(URI, 0, 4, **INVOKED))[0] == "ready long before"
    client.type(URI, 2, 0, 4, "other ")
    assert await client.complete(URI, 0, 10, **INVOKED) is None, "nothing was offered here"


# --- ahead ----------------------------------------------------------------------------------------------------------


async def counting(request: CompletionRequest) -> CompletionResult:
    text = f"call_{request.prefix.count('call')}()"
    return CompletionResult(text=text, reason=Reason.LINE, language="python")


async def test_what_follows_an_accepted_text_is_ready(inside: Any) -> None:
    client = await started(inside, counting, "x = ", speculate=True)
    first, _ = only_item(await client.complete(URI, 0, 4))
    client.type(URI, 2, 0, 4, first)
    second, place = only_item(await client.complete(URI, 0, 4 + len(first)))
    assert (second, place) == ("call_1()", at(0, 4 + len(first)))
    purposes = [request.purpose for request in client.engine.requests]
    assert purposes[:2] == [Purpose.COMPLETE, Purpose.SPECULATE]
    assert Purpose.COMPLETE not in purposes[1:], "nobody had to ask again"


async def test_work_ahead_gives_way_to_typing(inside: Any) -> None:
    client = await started(inside, counting, "x = ", speculate=True)
    await client.complete(URI, 0, 4)
    client.type(URI, 2, 0, 4, "other ")
    assert only_item(await client.complete(URI, 0, 10))[0] == "call_0()"
    assert client.engine.most == 1


async def slow_at_first(request: CompletionRequest) -> CompletionResult:
    if request.purpose is Purpose.SPECULATE:
        return CompletionResult(text="found later", reason=Reason.LINE, language="python")
    return CompletionResult(text="", reason=Reason.DEADLINE, language="python")


async def test_a_file_that_takes_long_to_read_is_read_on_while_idle(inside: Any) -> None:
    client = await started(inside, slow_at_first, "x = ", speculate=True)
    assert await client.complete(URI, 0, 4) is None
    assert only_item(await client.complete(URI, 0, 4))[0] == "found later", "the next request joins the work"
    first, ahead = client.engine.requests[:2]
    assert (ahead.purpose, ahead.deadline_ms) == (Purpose.SPECULATE, 4 * first.deadline_ms)


async def test_nothing_is_done_ahead_where_the_option_says_so(inside: Any) -> None:
    client = await started(inside, counting, "x = ", speculate=False)
    await client.complete(URI, 0, 4)
    assert client.server.state.turns.idle


# --- several --------------------------------------------------------------------------------------------------------


async def several(request: CompletionRequest) -> CompletionResult:
    others = tuple(Candidate(f"other_{n}") for n in range(request.candidates - 1))
    return CompletionResult(text="best", reason=Reason.LINE, language="python", others=(*others, Candidate("best")))


async def test_one_item_while_typing_and_several_on_demand(inside: Any) -> None:
    client = await started(inside, several, "x = ")
    answer = await client.complete(URI, 0, 4)
    assert [item["insertText"] for item in answer["items"]] == ["best"]
    answer = await client.complete(URI, 0, 4, **INVOKED)
    assert [item["insertText"] for item in answer["items"]] == ["best", "other_0", "other_1"]
    assert [request.candidates for request in client.engine.requests] == [1, 3]


async def test_a_client_that_never_asks_by_hand_can_have_several(inside: Any) -> None:
    client = await started(inside, several, "x = ", automaticCandidates=2)
    assert len((await client.complete(URI, 0, 4))["items"]) == 2


# --- waiting --------------------------------------------------------------------------------------------------------


async def test_a_fixed_wait_lets_only_the_last_of_a_burst_through(inside: Any) -> None:
    client = await started(inside, "1", "x = ", debounce="fixed", debounceMs=60)
    answers = []
    for number in range(8):
        client.type(URI, 2 + number, 0, 4 + number, "y")
        answers.append(client.start_completion(URI, 0, 5 + number)[1])
    results = [(await answer)["result"] for answer in answers]
    assert [bool(result) for result in results] == [False] * 7 + [True]
    assert len(client.engine.requests) == 1


async def test_asking_by_hand_does_not_wait(inside: Any) -> None:
    client = await started(inside, "1", "x = ", debounce="fixed", debounceMs=5000, deadlineMs=600_000)
    assert only_item(await client.complete(URI, 0, 4, **INVOKED))[0] == "1"


async def test_an_adaptive_wait_lets_fewer_through_than_were_asked_for(inside: Any) -> None:
    client = await started(inside, "1", "x = ")
    for _ in range(40):
        client.server.state.pace.answered(3.0)
    answers = []
    for number in range(20):
        client.type(URI, 2 + number, 0, 4 + number, "y")
        answers.append(client.start_completion(URI, 0, 5 + number)[1])
    assert (await answers[-1])["result"]
    assert len(client.engine.requests) < 15  # of 20; how many depends on the machine


@pytest.mark.parametrize(
    ("options", "asked", "reason"),
    [
        ({"automatic": False}, {}, "disabled"),
        ({"disabledLanguages": ["python"]}, INVOKED, "disabled"),
        ({"exclude": ["a.py"]}, INVOKED, "excluded"),
    ],
)
async def test_what_an_option_turns_off(inside: Any, options: Any, asked: Any, reason: str) -> None:
    client = await started(inside, "1", "x = ", **options)
    assert await client.complete(URI, 0, 4, **asked) is None
    await client.until(lambda: f"nothing to show: {reason}" in client.log)
    assert client.sent("remask/didChangeStatus")[-1]["kind"] == "Inactive"


async def test_manual_mode_answers_when_asked(inside: Any) -> None:
    client = await started(inside, "1", "x = ", automatic=False)
    assert only_item(await client.complete(URI, 0, 4, **INVOKED))[0] == "1"


async def test_one_line_only_where_the_option_says_so(inside: Any) -> None:
    client = await started(inside, "1", "def f():", multiline="never")
    await client.complete(URI, 0, 8)
    assert client.engine.requests[-1].extent is Extent.LINE


# --- the selected entry ---------------------------------------------------------------------------------------------


def selected(start: int, end: int, text: str, line: int = 0) -> dict[str, Any]:
    return {"selectedCompletionInfo": {"range": span(line, start, end), "text": text}}


async def test_an_item_extends_the_selected_entry_in_its_range(inside: Any) -> None:
    client = await started(inside, "(a, b)", "'😀', self.ar\nend")
    answer = await client.complete(URI, 0, 13, **selected(11, 13, "area"))
    assert only_item(answer) == ("area(a, b)", span(0, 11, 13))
    (request,) = client.engine.requests
    assert (request.prefix, request.suffix) == ("'😀', self.area", "\nend")
    assert request.extent is Extent.LINE


async def test_another_entry_is_another_place(inside: Any) -> None:
    client = await started(inside, "()", "self.ar")
    assert only_item(await client.complete(URI, 0, 7, **selected(5, 7, "area")))[0] == "area()"
    assert only_item(await client.complete(URI, 0, 7, **selected(5, 7, "args")))[0] == "args()"
    assert [request.prefix for request in client.engine.requests] == ["self.area", "self.args"]


async def test_nothing_after_the_selected_entry_is_nothing(inside: Any) -> None:
    client = await started(inside, "", "self.ar")
    assert await client.complete(URI, 0, 7, **selected(5, 7, "area")) is None


@pytest.mark.parametrize("info", [selected(0, 3, "area"), selected(5, 7, ""), selected(5, 7, "area", line=9)])
async def test_an_entry_of_another_moment_is_nothing(inside: Any, info: Any) -> None:
    client = await started(inside, "()", "self.ar\nx")
    assert await client.complete(URI, 0, 7, **info) is None


async def test_a_document_that_changed_under_the_selected_entry_is_nothing(inside: Any) -> None:
    client = await inside("()")
    await client.initialize()
    client.open(URI, "self.ar # wait")
    _, answer = client.start_completion(URI, 0, 14, **selected(5, 14, "area # wait"))
    await client.asked(1)
    client.type(URI, 2, 0, 14, "x")
    await client.let_go()
    assert (await answer)["result"] is None


# --- what becomes of it ---------------------------------------------------------------------------------------------


async def test_shown_accepted_and_rejected_are_counted(inside: Any) -> None:
    client = await started(inside, "first + second", "x = \n\n")
    counts = client.server.state.statistics.counts
    (item,) = (await client.complete(URI, 0, 4))["items"]
    client.notify("textDocument/didShowCompletion", {"item": item})
    client.notify("textDocument/didShowCompletion", {"item": item})
    client.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 5})
    await client.request("workspace/executeCommand", item["command"])
    (item,) = (await client.complete(URI, 1, 0))["items"]
    await client.complete(URI, 2, 0)
    assert counts == {
        "offered": 3,
        "shown": 1,
        "accepted": 1,
        "partly": 1,
        "characters_offered": 42,
        "characters_accepted": 14,
    }
    client.server.state.statistics.flush()
    (today,) = read_statistics().values()
    assert (today["offered"], today["rejected"]) == (3, 1), "the newest may still be taken"
    for nonsense in (
        None,
        {},
        {"item": 5},
        {"item": {"command": {"command": "x"}}},
        {"item": item, "acceptedLength": -1},
    ):
        client.notify("textDocument/didPartiallyAcceptCompletion", nonsense)
        client.notify("textDocument/didShowCompletion", nonsense)
    for arguments in ([], [5], ["x"], ["1.1.1"], ["1.x"], ["99999999999999999999.0"], ["7.0", 5]):
        await client.request("workspace/executeCommand", {"command": "remask.accepted", "arguments": arguments})
    assert not client.server.state.statistics.counts["accepted"]
