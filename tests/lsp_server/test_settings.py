"""Options from the start, pulled, pushed and changed."""

from __future__ import annotations

from typing import Any

import pytest

URI = "file:///work/a.py"
PULLS = {"workspace": {"configuration": True}}


async def options_are(client: Any, **expected: Any) -> None:
    def now() -> dict[str, Any]:
        return {name: getattr(client.server.state.options, name) for name in expected}

    for _ in range(50):  # each is a turn of the server's loop at least
        await client.error("test/unknown")
        if now() == expected:
            return
    assert now() == expected


async def test_pulled_options_go_over_those_from_the_start(inside: Any) -> None:
    client = await inside("1")
    client.answers["workspace/configuration"] = [{"maxTokens": 9, "command": "remask", "candidates": 2}]
    await client.initialize(options={"maxTokens": 7, "deadlineMs": 700}, capabilities=PULLS)
    await client.until(lambda: client.sent("workspace/configuration"))
    await options_are(client, max_tokens=9, deadline_ms=700, candidates=2)
    client.answers["workspace/configuration"] = [None]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.until(lambda: len(client.sent("workspace/configuration")) == 2)
    await options_are(client, max_tokens=7, deadline_ms=700, candidates=3)
    assert not client.windows


async def test_pushed_options(inside: Any) -> None:
    client = await inside("1")
    await client.initialize(options={"maxTokens": 7})
    client.notify("workspace/didChangeConfiguration", {"settings": {"remask": {"candidates": 1}}})
    await options_are(client, max_tokens=7, candidates=1)
    client.notify("workspace/didChangeConfiguration", {"settings": {"other": {}}})
    await options_are(client, candidates=1)


@pytest.mark.parametrize("answer", [None, [], [5], "x", {"a": 1}])
async def test_an_editor_that_answers_nonsense_changes_nothing(inside: Any, answer: Any) -> None:
    client = await inside("1")
    client.answers["workspace/configuration"] = answer
    await client.initialize(options={"maxTokens": 7}, capabilities=PULLS)
    client.open(URI, "x = ")
    assert await client.complete(URI, 0, 4)
    await options_are(client, max_tokens=7)


async def test_a_wrong_option_is_said_once(inside: Any) -> None:
    client = await inside("1")
    await client.initialize(options={"speculate": False})
    for _ in range(3):
        client.notify("workspace/didChangeConfiguration", {"settings": {"remask": {"maxTokens": "x"}}})
    await options_are(client, max_tokens=64)
    (sentence,) = client.windows
    assert "'maxTokens' is a whole number from 1 to 4096, not 'x'" in sentence


async def test_another_model_is_another_engine(inside: Any) -> None:
    client = await inside("1")
    await client.initialize(options={"speculate": False})
    first = client.engine
    client.engine = type(first)("2")
    client.notify("workspace/didChangeConfiguration", {"settings": {"remask": {"device": "cpu"}}})
    await client.error("test/unknown")
    client.open(URI, "x = ")
    assert (await client.complete(URI, 0, 4))["items"][0]["insertText"] == "2"
    assert first.closed
    assert client.server.state.engine is client.engine


async def test_a_client_that_can_is_asked_to_tell_of_changes(inside: Any) -> None:
    dynamic = {"dynamicRegistration": True}
    client = await inside("1")
    await client.initialize(
        capabilities={"workspace": {"didChangeConfiguration": dynamic, "didChangeWatchedFiles": dynamic}}
    )
    await client.until(lambda: len(client.sent("client/registerCapability")) == 2)
    settings, files = (params["registrations"][0] for params in client.sent("client/registerCapability"))
    assert settings["method"] == "workspace/didChangeConfiguration"
    assert settings["registerOptions"] == {"section": "remask"}
    patterns = [watcher["globPattern"] for watcher in files["registerOptions"]["watchers"]]
    assert "py," in patterns[0]
    assert ".{gitignore,remaskignore}" in patterns[1]
