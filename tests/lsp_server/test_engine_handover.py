"""A shared engine goes on as long as some server wants it, whoever has started it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil
import pytest
from shared_engines import Start, answers, complete, health, is_gone, two

from remask.lsp_server.engine_share import JoinedEngine
from remask.lsp_server.status import EngineState


async def test_an_engine_goes_on_for_the_others_when_the_server_leaves_that_has_started_it(start: Start) -> None:
    owner, guest = await two(start)
    states: list[EngineState] = []
    guest.on_state = lambda state, _: states.append(state)
    pid = owner.pid
    await owner.close()
    await answers(guest)
    assert guest.pid == pid
    assert not states, "nothing has changed for those who use it"
    late = start()
    await answers(late)
    assert late.pid == pid, "it is found, too"
    await guest.close()
    await answers(late)
    assert late.pid == pid
    await late.close()
    await is_gone(pid)
    last = start()
    await answers(last)
    assert last.pid != pid


async def test_a_request_is_asked_again_when_the_engine_leaves_meanwhile(start: Start) -> None:
    owner, guest = await two(start)
    task = asyncio.ensure_future(complete(guest, "# once", deadline_ms=60_000))
    while not (await health(owner))["busy"]:  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.01)
    assert owner.pid
    psutil.Process(owner.pid).terminate()
    assert (await task).text == "pass", "by the next one"


async def test_an_engine_that_others_use_is_not_put_away(start: Start) -> None:
    owner, guest = start(unload_after_s=1.0), start()
    idle = asyncio.Event()
    owner.on_state = lambda state, _: idle.set() if state is EngineState.UNLOADED else None
    await complete(owner)
    pid = owner.pid
    await complete(guest)
    async with asyncio.timeout(20):
        await idle.wait()
    assert (await complete(guest)).text == (await complete(owner)).text == "pass"
    assert guest.pid == pid
    assert (await health(guest))["guests"] == 2, "who had started it has come back as a guest"


async def test_an_engine_that_hangs_ends_with_the_server_that_has_started_it(start: Start) -> None:
    """It cannot say that it goes on for others."""
    owner, guest = await two(start)
    pid = owner.pid
    psutil.Process(pid).suspend()
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:  # noqa: ASYNC110 - the system decides
        await asyncio.sleep(0.01)
    await owner.close()
    await is_gone(pid)
    await answers(guest)
    assert guest.pid != pid


async def test_an_engine_that_hangs_keeps_no_new_server_from_one_of_its_own(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its socket still takes connections."""
    monkeypatch.setattr("remask.lsp_server.engine_share.JOINS_WITHIN_S", 0.05)
    monkeypatch.setattr("remask.lsp_server.engine_source.QUIET_LOOKS", 1_000_000)
    owner = start()
    await answers(owner)
    psutil.Process(owner.pid).suspend()
    late = start()
    await answers(late)
    assert late.pid != owner.pid
    psutil.Process(owner.pid).resume()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 404 Not Found\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"\r\n\r\n"])
async def test_an_engine_that_leaves_just_now_is_not_joined(tmp_path: Path, answer: bytes) -> None:
    def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    path = str(tmp_path / "a.sock")
    async with await asyncio.start_unix_server(close, path):
        assert not await JoinedEngine(path, os.getpid()).join()
    assert not await JoinedEngine(path, os.getpid()).join(), "nobody listens"
