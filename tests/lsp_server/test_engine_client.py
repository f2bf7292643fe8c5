"""The door to the engine, with a real process behind it that has no model."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.engine_client import STARTS, ProcessEngine, open_engine
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.status import EngineState

SERVICE = Path(__file__).with_name("fake_service.py")
Start = Callable[..., ProcessEngine]


@pytest.fixture
async def start(runtime_dir: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Start]:
    caplog.set_level(logging.INFO, "remask")
    engines: list[ProcessEngine] = []

    def make(*arguments: str, unload_after_s: float = 0) -> ProcessEngine:
        command = [sys.executable, str(SERVICE), *arguments]
        engines.append(ProcessEngine(command, back_off_s=0.01, unload_after_s=unload_after_s))
        return engines[-1]

    yield make
    pids = [engine.pid for engine in engines if engine.pid]
    for engine in engines:
        await engine.close()
    assert not [pid for pid in pids if psutil.pid_exists(pid)], "no process is left"
    assert not sockets(runtime_dir)


def sockets(folder: Path) -> list[Path]:
    return list(folder.glob("*.sock"))


async def complete(engine: ProcessEngine, prefix: str = "x = ", **fields: Any) -> CompletionResult:
    return await engine.complete(CompletionRequest(document="secret", language="python", prefix=prefix, **fields))


async def answers(engine: ProcessEngine) -> None:
    """Wait until the engine answers (again)."""
    while (await complete(engine)).reason is Reason.ENGINE:  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.01)


async def is_not_answered(engine: ProcessEngine) -> CompletionResult:
    """Ask what the engine never answers; on a busy machine the time may be up before it hears of it."""
    while (result := await complete(engine, "# deaf", deadline_ms=50)).reason is Reason.DEADLINE:
        pass
    return result


async def until_busy(engine: ProcessEngine) -> None:
    """Wait until the engine's process has begun a generation."""
    busy = False
    while not busy:
        assert engine._link is not None
        async with engine._link._session.get("http://engine/v1/health") as response:
            busy = (await response.json())["busy"]


async def test_the_first_request_waits_for_the_engine_to_load(start: Start) -> None:
    result = await complete(start(), "x = 你😀")
    assert (result.text, result.reason, result.language) == ("pass", Reason.END, "python")


async def test_a_large_request_goes_through(start: Start) -> None:
    assert (await complete(start(), "你" * 660_000)).text == "pass"


async def test_a_request_that_is_cancelled_frees_the_worker(start: Start) -> None:
    """Report 24."""
    engine = start()
    await complete(engine)
    task = asyncio.ensure_future(complete(engine, "# block"))
    await until_busy(engine)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await complete(engine)).text == "pass"


async def test_an_engine_that_dies_is_started_again(start: Start) -> None:
    engine = start()
    for _ in range(2):  # an answer in between earns the next restart
        await answers(engine)
        assert (await complete(engine, "# die")).reason is Reason.ENGINE
    await answers(engine)
    assert engine.pid
    psutil.Process(engine.pid).kill()
    await answers(engine)


async def test_an_engine_that_dies_on_everything_is_left_alone_after_a_while(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    engine = start()
    while "not started any more" not in caplog.text:
        assert (await complete(engine, "# die")).reason is Reason.ENGINE
        await asyncio.sleep(0.01)
    assert caplog.text.count("the engine is ready") == STARTS
    result = await complete(engine)
    assert (result.reason, result.detail, engine.pid) == (Reason.ENGINE, "The engine is not running.", None)


async def test_an_engine_that_cannot_load_is_said_once(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    engine = start("--broken")
    for _ in range(2):
        assert (await complete(engine)).reason is Reason.ENGINE
    assert caplog.text.count("the engine cannot start: The weight shard is damaged. Install Remask again.") == 1


async def test_an_engine_that_ends_before_it_is_ready(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "once").touch()
    assert (await complete(start("--once", str(tmp_path / "once")))).reason is Reason.ENGINE
    assert "ended before it was ready" in caplog.text


async def test_a_command_that_does_not_exist(runtime_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = ProcessEngine(["/no/such/python"])
    assert (await complete(engine)).reason is Reason.ENGINE
    assert "cannot be started: No such file" in caplog.text
    await engine.close()


async def test_a_request_that_the_engine_fails_on(start: Start) -> None:
    engine = start()
    result = await complete(engine, "# raise")
    assert (result.reason, result.text) == (Reason.ENGINE, "")
    assert "failed on this request" in result.detail
    assert "secret" not in result.detail
    assert (await complete(engine)).text == "pass"


async def test_an_engine_that_does_not_answer_in_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = start()
    await complete(engine)
    monkeypatch.setattr("remask.lsp_server.engine_client.LATE_S", 0.05)
    result = await is_not_answered(engine)
    assert (result.reason, result.detail) == (Reason.ENGINE, "The engine did not answer in time.")


async def test_an_engine_that_never_answers_is_ended_and_started_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start()
    states: list[tuple[EngineState, str]] = []
    engine.on_state = lambda *state: states.append(state)
    await complete(engine)
    stuck = engine.pid
    with monkeypatch.context() as patch:
        patch.setattr("remask.lsp_server.engine_client.LATE_S", 0.05)
        patch.setattr("remask.lsp_server.engine_client.STUCK_S", 0.0)
        await is_not_answered(engine)
    await answers(engine)
    assert stuck
    assert not psutil.pid_exists(stuck)
    assert (EngineState.GONE, "The engine did not answer and is started again.") in states


async def test_an_engine_that_is_only_slow_is_left_alone(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine can make one request late; ending the engine would only make the next one later."""
    engine = start()
    await complete(engine)
    slow = engine.pid
    with monkeypatch.context() as patch:
        patch.setattr("remask.lsp_server.engine_client.LATE_S", 0.05)
        assert (await complete(engine, "# block", deadline_ms=50)).reason is Reason.ENGINE
    await answers(engine)
    assert engine.pid == slow


async def test_a_request_that_waited_for_the_engine_to_load_ends_nobody(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remask.lsp_server.engine_client.LATE_S", 0.05)
    engine = start("--slow")
    assert (await complete(engine, deadline_ms=1)).reason is Reason.LOADING
    assert not engine._stuck


async def test_a_model_that_loads_for_longer_than_a_request_waits_is_said_to_be_loading(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing has failed, so nobody is warned or sent to look for a cause."""
    monkeypatch.setattr("remask.lsp_server.engine_client.LATE_S", 0.05)
    result = await complete(start("--slow"), deadline_ms=1)
    assert (result.reason, result.detail) == (Reason.LOADING, "The model is still being loaded.")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_closing_an_engine_that_was_never_started(start: Start) -> None:
    await start().close()
    engine = start()
    engine.start()
    await engine.close()  # at once
    assert (await complete(engine)).reason is Reason.ENGINE


def test_the_options_reach_the_engines_command() -> None:
    options = ServerOptions(model=Path("/m"), device="cpu", dtype="float32")
    engine = open_engine(options)
    assert isinstance(engine, ProcessEngine)
    assert " ".join(engine._source.command).endswith(
        "-m remask.engine.service --device cpu --dtype float32 --model /m".replace("/m", str(Path("/m")))
    )


async def test_an_idle_engine_is_put_away_and_comes_back(start: Start) -> None:
    """Report 28."""
    engine = start(unload_after_s=0.05)
    states: asyncio.Queue[EngineState] = asyncio.Queue()
    engine.on_state = lambda state, _: states.put_nowait(state)

    async def until(wanted: EngineState) -> None:
        async with asyncio.timeout(20):
            while await states.get() is not wanted:
                pass

    assert (await complete(engine)).text == "pass"
    pid = engine.pid
    assert pid
    await until(EngineState.UNLOADED)
    assert not psutil.pid_exists(pid)
    assert engine.pid is None
    assert (await complete(engine)).text == "pass", "the next request waits for it"
    assert engine.pid != pid


async def test_an_engine_at_work_is_not_put_away(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = start(unload_after_s=0.05)
    await complete(engine)
    task = asyncio.ensure_future(complete(engine, "# block", deadline_ms=60_000))
    await until_busy(engine)
    looks: asyncio.Queue[bool] = asyncio.Queue()
    is_idle = engine._is_idle

    def look() -> bool:
        looks.put_nowait(is_idle())
        return is_idle()

    monkeypatch.setattr(engine, "_is_idle", look)
    async with asyncio.timeout(20):
        assert not any([await looks.get() for _ in range(3)])
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_drafts_come_while_it_is_written(start: Start) -> None:
    engine = start()
    drafts: list[str] = []
    request = CompletionRequest(document="d", language="python", prefix="# drafts")
    result = await engine.complete(request, drafts.append)
    assert result.text == "pass"
    assert drafts
    assert drafts[-1] == "pas"
    request = CompletionRequest(document="d", language="python", prefix="# raise")
    assert (await engine.complete(request, drafts.append)).reason is Reason.ENGINE


async def test_a_closed_document_is_put_away(start: Start) -> None:
    engine = start()
    await engine.close_document("d")  # not started: nothing to do
    await complete(engine)
    await engine.close_document("secret")
    assert (await complete(engine, "# saved")).text == "['secret'] ['secret']"


async def test_what_was_read_is_saved_when_the_engine_leaves(start: Start, tmp_path: Path) -> None:
    engine = start("--note", str(tmp_path / "note"))
    await complete(engine)
    await engine.close()
    assert (tmp_path / "note").read_text() == "secret\n"
