"""What the user is told: the engine's state, how busy it is, why there is nothing, and a window once."""

from __future__ import annotations

from typing import Any

import pytest

from remask.contract.messages import Reason
from remask.contract.reasons import EXPLANATIONS, explain
from remask.lsp_server.status import EngineState, Status

URI = "file:///project/a.py"
STATUS = "remask/didChangeStatus"


@pytest.fixture
def told() -> tuple[Status, list[dict[str, Any]], list[str]]:
    sent: list[dict[str, Any]] = []
    shown: list[str] = []
    return Status(lambda _, values: sent.append(values), shown.append), sent, shown


def test_every_reason_is_explained() -> None:
    assert set(EXPLANATIONS) == set(Reason)
    for reason in Reason:
        assert explain(reason).endswith(".")


def test_a_model_that_loads_for_longer_than_a_request_waits_is_no_failure(told: Any) -> None:
    status, sent, _ = told
    status.answered(Reason.LOADING)
    assert (sent[-1]["kind"], sent[-1]["reason"]) == ("Normal", "loading")
    assert "loaded" in explain(Reason.LOADING)
    assert "doctor" not in sent[-1]["message"]


def test_the_engines_life(told: Any) -> None:
    status, sent, _ = told
    for state in (EngineState.STARTING, EngineState.READY, EngineState.READY, EngineState.GONE, EngineState.UNLOADED):
        status.engine(state)
    assert [(values["busy"], values["kind"]) for values in sent] == [
        *((True, "Normal"), (False, "Normal"), (True, "Warning"), (False, "Normal"))
    ]


def test_an_engine_that_cannot_start_is_a_window_once(told: Any) -> None:
    status, sent, shown = told
    for _ in range(3):
        status.engine(EngineState.FAILED, "No model.")
    assert shown == ["No model."]
    assert sent[-1] == {"busy": False, "kind": "Error", "message": "No model."}
    status.answered(Reason.LANGUAGE)
    assert sent[-1]["kind"] == "Error", "the graver one is told"


def test_a_file_that_is_not_completed_is_inactive_until_another_is(told: Any) -> None:
    status, sent, _ = told
    status.engine(EngineState.READY)
    status.answered(Reason.EXCLUDED)
    assert (sent[-1]["kind"], sent[-1]["reason"]) == ("Inactive", "excluded")
    assert "secrets" in sent[-1]["message"]
    status.answered(None)
    assert sent[-1] == {"busy": False, "kind": "Normal", "message": "Ready."}


def test_why_there_is_no_ghost_text_is_said_until_there_is_some(told: Any) -> None:
    status, sent, _ = told
    status.engine(EngineState.READY)
    status.answered(Reason.DEADLINE)
    assert sent[-1]["kind"] == "Normal"
    assert sent[-1]["message"] == f"Ready. No ghost text: {explain(Reason.DEADLINE)}"
    status.answered(None)
    assert sent[-1]["message"] == "Ready."


async def test_busy_while_the_engine_works(inside: Any) -> None:
    client = await inside("1")
    await client.initialize()
    client.open(URI, "x = # wait")
    _, answer = client.start_completion(URI, 0, 10)
    await client.until(lambda: client.sent(STATUS)[-1:] and client.sent(STATUS)[-1]["busy"])
    await client.let_go()
    await answer
    await client.until(lambda: not client.sent(STATUS)[-1]["busy"])


async def test_the_real_engine_that_cannot_load(connect: Any) -> None:
    client = await connect("--process", "--broken")
    await client.initialize(capabilities={"window": {"workDoneProgress": True}})
    client.open(URI, "x = ")
    await client.until(lambda: client.windows)
    assert client.windows == ["Remask's engine cannot start: The weight shard is damaged. Install Remask again."]
    assert await client.complete(URI, 0, 4) is None
    assert await client.complete(URI, 0, 4) is None
    await client.until(lambda: client.sent(STATUS)[-1]["kind"] == "Error")
    assert len(client.windows) == 1
    await client.until(lambda: [one["value"]["kind"] for one in client.sent("$/progress")] == ["begin", "end"])
    assert await client.shut_down() == 0


async def test_loading_shows_progress(connect: Any) -> None:
    client = await connect("--process")
    await client.initialize(capabilities={"window": {"workDoneProgress": True}})
    await client.until(lambda: [one["value"]["kind"] for one in client.sent("$/progress")] == ["begin", "end"])
    assert client.sent("$/progress")[0]["value"]["title"] == "Remask: loading the model"
    assert client.sent(STATUS)[0] == {"busy": True, "kind": "Normal", "message": "The model is being loaded."}
    assert await client.shut_down() == 0


async def test_an_engine_that_starts_twice_shows_one_progress(inside: Any) -> None:
    """As where another server's engine has left before it was said that this one waits for it."""
    client = await inside("1")
    await client.initialize(capabilities={"window": {"workDoneProgress": True}})

    def kinds() -> list[str]:
        return [one["value"]["kind"] for one in client.sent("$/progress")]

    for state in (EngineState.STARTING, EngineState.STARTING):
        client.server.state.engine.on_state(state, "")
    await client.until(kinds)
    await client.error("test/unknown")  # a second one would have begun by now
    client.server.state.engine.on_state(EngineState.READY, "")
    await client.until(lambda: "end" in kinds())
    assert kinds() == ["begin", "end"]
