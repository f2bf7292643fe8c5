"""Options from the start, pulled, pushed and changed."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from remask.contract.messages import CompletionRequest, CompletionResult
from remask.lsp_server.engine_link import OnDraft
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.options import ServerOptions

URI = "file:///project/a.py"
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


class OneEngine(FakeEngine):
    """Counts how many of its kind are started and not closed."""

    running_now = 0
    most_at_once = 0
    made: ClassVar[list[OneEngine]] = []

    def __init__(self, options: ServerOptions) -> None:
        super().__init__(options.dtype)
        self.is_started = False
        OneEngine.made.append(self)

    def start(self) -> None:
        if not self.is_started:
            self.is_started = True
            OneEngine.running_now += 1
            OneEngine.most_at_once = max(OneEngine.most_at_once, OneEngine.running_now)
        super().start()

    async def complete(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> CompletionResult:
        self.start()
        return await super().complete(request, on_draft)

    async def close(self) -> None:
        await asyncio.sleep(0)
        OneEngine.running_now -= self.is_started
        await super().close()


@pytest.fixture
def engines() -> list[OneEngine]:
    OneEngine.running_now = OneEngine.most_at_once = 0
    OneEngine.made = []
    return OneEngine.made


async def test_options_pulled_at_the_start_are_known_before_an_engine_starts(
    inside: Any, engines: list[OneEngine]
) -> None:
    client = await inside("")
    client.server._make_engine = OneEngine
    client.answers["workspace/configuration"] = [{"dtype": "float32"}]
    await client.initialize(options={"speculate": False}, capabilities=PULLS)
    client.open(URI, "x = ")
    assert (await client.complete(URI, 0, 4))["items"][0]["insertText"] == "float32"
    assert [engine.is_started for engine in engines] == [False, True]
    client.engine.closed = True


async def test_an_engine_is_gone_before_another_starts(inside: Any, engines: list[OneEngine]) -> None:
    client = await inside("")
    client.server._make_engine = OneEngine
    await client.initialize(options={"speculate": False})
    for dtype in ("bfloat16", "float32", "bfloat16", "float32"):
        client.notify("workspace/didChangeConfiguration", {"settings": {"remask": {"dtype": dtype}}})
    client.open(URI, "x = ")
    assert (await client.complete(URI, 0, 4))["items"][0]["insertText"] == "float32"
    assert OneEngine.most_at_once == 1
    assert [engine.closed for engine in engines[-2:]] == [True, False]
    client.engine.closed = True
