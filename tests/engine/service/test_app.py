"""The routes, their errors, and what a closed connection means."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from remask.contract.messages import CompletionRequest, CompletionResult
from remask.engine.service.app import MAX_BODY_BYTES, make_app
from remask.engine.service.worker import ModelWorker

URL = "http://engine/v1/complete"


def body(prefix: str) -> str:
    return CompletionRequest(document="secret", language="python", prefix=prefix).to_json()


@pytest.fixture
async def session(tmp_path: Path, completer: Any) -> AsyncIterator[aiohttp.ClientSession]:
    worker = ModelWorker(lambda: completer)
    runner = web.AppRunner(make_app(worker, await worker.start()), handler_cancellation=True)
    await runner.setup()
    await web.UnixSite(runner, tmp_path / "s").start()
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=str(tmp_path / "s"))) as session:
        yield session
    await runner.cleanup()


async def test_a_completion_goes_there_and_back(session: aiohttp.ClientSession) -> None:
    async with session.post(URL, data=body("x = 你😀")) as response:
        assert response.status == 200
        result = CompletionResult.from_dict(await response.json())
    assert result.text.startswith("x = 你😀")


async def test_health_tells_what_runs_and_how_busy_it_is(session: aiohttp.ClientSession) -> None:
    async with session.get("http://engine/v1/health") as response:
        values = await response.json()
    assert (values["ready"], values["model"], values["waiting"], values["completed"]) == (True, "fake", 0, 0)


@pytest.mark.parametrize(
    ("data", "status", "kind"),
    [
        ("", 400, "InputError"),
        ("[]", 400, "InputError"),
        ("{}", 400, "InputError"),
        ("[" * 100_000, 400, "InputError"),
        (b"\xff\xfe", 400, "InputError"),
        (json.dumps({"document": "d", "language": "p", "prefix": "", "extra": 1}), 400, "InputError"),
        (json.dumps({"document": "d", "language": "p", "prefix": "", "max_tokens": 0}), 400, "InputError"),
        (io.BytesIO(b"x" * (MAX_BODY_BYTES + 1)), 413, "InputError"),
        (body("bad input"), 400, "InputError"),
        (body("disk full"), 507, "StorageError"),
        (body("bug"), 500, "EngineError"),
    ],
)
async def test_every_error_has_a_kind_and_a_sentence(
    session: aiohttp.ClientSession, data: Any, status: int, kind: str
) -> None:
    async with session.post(URL, data=data) as response:
        error = (await response.json())["error"]
        assert (response.status, error["kind"]) == (status, kind)
    assert error["message"]
    assert "secret" not in str(error)
    async with session.post(URL, data=body("next")) as response:
        assert response.status == 200, "the service lives"


async def test_an_unknown_route_is_json_too(session: aiohttp.ClientSession) -> None:
    async with session.get("http://engine/v2") as response:
        assert (response.status, (await response.json())["error"]["kind"]) == (404, "InputError")


async def test_closing_the_connection_cancels(session: aiohttp.ClientSession, completer: Any) -> None:
    task = asyncio.ensure_future(session.post(URL, data=body("until cancelled")))
    assert await asyncio.to_thread(completer.entered.wait, 10)
    task.cancel()
    await asyncio.wait((task,))
    async with session.post(URL, data=body("next")) as response:
        assert response.status == 200, "the only worker is free again"


async def test_a_client_that_goes_while_drafts_are_written_leaves_nothing_waiting(
    session: aiohttp.ClientSession, completer: Any
) -> None:
    before = asyncio.all_tasks()
    asked = asyncio.ensure_future(session.post(f"{URL}?drafts=1", data=body("until cancelled")))
    assert await asyncio.to_thread(completer.entered.wait, 10)
    (await asked).close()
    async with asyncio.timeout(10):
        while any("Queue.get" in repr(task) for task in asyncio.all_tasks() - before):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_drafts_are_lines_and_the_result_is_the_last(session: aiohttp.ClientSession) -> None:
    async with session.post(f"{URL}?drafts=1", data=body("x = ")) as response:
        assert response.content_type == "application/x-ndjson"
        (line,) = (await response.read()).splitlines()  # this engine tells nothing meanwhile
    assert CompletionResult.from_dict(json.loads(line)["result"]).text.startswith("x = ")
    async with session.post(f"{URL}?drafts=1", data=body("bad input")) as response:
        (line,) = (await response.read()).splitlines()
    assert json.loads(line)["error"]["message"] == "No such language."


async def test_closing_a_document(session: aiohttp.ClientSession) -> None:
    async with session.post("http://engine/v1/close", data=json.dumps({"document": "secret"})) as response:
        assert (response.status, await response.json()) == (200, {})
    for nonsense in ("", "[]", "{}", '{"document": 5}', "[" * 10_000):
        async with session.post("http://engine/v1/close", data=nonsense) as response:
            assert response.status == 400
