"""One thread, one generation at a time, cancelled ones skipped."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from remask.contract.errors import EngineError, InputError, ModelError, StorageError
from remask.contract.messages import CompletionRequest, CompletionResult, Purpose, Reason
from remask.engine.service.worker import ModelWorker


def request(prefix: str, deadline_ms: int = 10_000) -> CompletionRequest:
    return CompletionRequest(document="secret", language="python", prefix=prefix, deadline_ms=deadline_ms)


@pytest.fixture
async def worker(completer: Any) -> ModelWorker:
    worker = ModelWorker(lambda: completer)
    assert await worker.start() == {"model": "fake"}
    return worker


async def entered(completer: Any) -> None:
    assert await asyncio.to_thread(completer.entered.wait, 10)


async def test_requests_run_one_after_the_other_in_one_thread(worker: ModelWorker, completer: Any) -> None:
    results = await asyncio.gather(*(worker.complete(request(str(n))) for n in range(5)))
    assert [result.text.split()[0] for result in results] == list("01234")
    assert completer.started == list("01234")
    assert completer.threads == {"model"}
    worker.stop()


async def test_a_request_cancelled_in_the_queue_never_starts(worker: ModelWorker, completer: Any) -> None:
    first = asyncio.ensure_future(worker.complete(request("wait")))
    await entered(completer)
    second = asyncio.ensure_future(worker.complete(request("skipped")))
    third = asyncio.ensure_future(worker.complete(request("third")))
    await asyncio.sleep(0)  # let both reach the queue
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    completer.go_on.set()
    await asyncio.gather(first, third)
    assert completer.started == ["wait", "third"]
    assert (worker.completed, worker.skipped) == (2, 1)


async def test_cancelling_the_wait_ends_the_generation(worker: ModelWorker, completer: Any) -> None:
    task = asyncio.ensure_future(worker.complete(request("until cancelled")))
    await entered(completer)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await worker.complete(request("next"))).text.startswith("next")


async def test_what_is_written_ahead_makes_way_for_what_a_user_waits_for(worker: ModelWorker, completer: Any) -> None:
    """Several servers share an engine: the window that one types in comes first."""
    ahead = replace(request("until cancelled"), purpose=Purpose.SPECULATE)
    first = asyncio.ensure_future(worker.complete(ahead))
    await entered(completer)
    second = asyncio.ensure_future(worker.complete(replace(request("also ahead"), purpose=Purpose.SPECULATE)))
    await asyncio.sleep(0)  # let it reach the queue
    assert not first.done()
    assert (await worker.complete(request("now"))).text.startswith("now")
    assert (await first).reason is Reason.CANCELLED
    assert (await second).text.startswith("also ahead")


async def test_what_a_user_waits_for_goes_before_what_waits_to_be_written_ahead(
    worker: ModelWorker, completer: Any
) -> None:
    first = asyncio.ensure_future(worker.complete(request("wait")))
    await entered(completer)
    ahead = asyncio.ensure_future(worker.complete(replace(request("ahead"), purpose=Purpose.SPECULATE)))
    await asyncio.sleep(0)  # let it reach the queue
    now = asyncio.ensure_future(worker.complete(request("now")))
    await asyncio.sleep(0)
    completer.go_on.set()
    await asyncio.gather(first, ahead, now)
    assert completer.started == ["wait", "now", "ahead"]


async def test_time_in_the_queue_counts(worker: ModelWorker, completer: Any) -> None:
    first = asyncio.ensure_future(worker.complete(request("wait")))
    await entered(completer)
    late = asyncio.ensure_future(worker.complete(request("late", deadline_ms=20)))
    later = asyncio.ensure_future(worker.complete(request("later", deadline_ms=60_000)))
    await asyncio.sleep(0.03)  # the deadline itself is what is waited for
    completer.go_on.set()
    assert (await late).reason is Reason.DEADLINE
    assert int((await later).text.split()[1]) < 60_000
    await first
    assert completer.started == ["wait", "later"]


async def test_errors_reach_whoever_waits_and_the_thread_lives(
    worker: ModelWorker, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InputError):
        await worker.complete(request("bad input"))
    with caplog.at_level(logging.ERROR), pytest.raises(EngineError) as caught:
        await worker.complete(request("bug"))
    assert "RuntimeError" in str(caught.value)
    assert "secret" not in str(caught.value) + caplog.text
    assert (await worker.complete(request("next"))).text.startswith("next")


async def test_a_model_that_cannot_be_loaded_says_so() -> None:
    def load() -> Any:
        raise ModelError("A shard is missing.")

    with pytest.raises(ModelError):
        await ModelWorker(load).start()


class Saving:
    """A completer with something to save; it refuses to save "bad"."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.idle = threading.Event()

    def complete(self, request: CompletionRequest, cancelled: Callable[[], bool]) -> CompletionResult:
        self.calls.append(f"complete {request.document}")
        return CompletionResult(text="x", reason=Reason.END, language="python")

    def describe(self) -> dict[str, Any]:
        return {}

    def save(self, document: str) -> None:
        self.calls.append(f"save {document}")
        self.idle.set()
        if document == "bad":
            raise StorageError("The disk is full.")

    def forget(self, document: str) -> None:
        self.calls.append(f"forget {document}")


async def saving(*documents: str, save_after_s: float = 60.0) -> tuple[ModelWorker, Saving]:
    completer = Saving()
    worker = ModelWorker(lambda: completer, save_after_s=save_after_s)
    await worker.start()
    for document in documents:
        await worker.complete(CompletionRequest(document=document, language="python", prefix=""))
    completer.calls.clear()
    return worker, completer


async def test_a_closed_document_is_saved_once_and_forgotten() -> None:
    worker, completer = await saving("a", "b")
    await worker.close_document("a")
    await worker.close_document("a")
    assert completer.calls == ["save a", "forget a", "forget a"]
    worker.stop()
    assert await worker.stopped(10)
    assert completer.calls[3:] == ["save b"]


async def test_what_was_read_is_saved_when_nothing_is_to_do() -> None:
    worker, completer = await saving("a", save_after_s=0.01)
    assert await asyncio.to_thread(completer.idle.wait, 10)
    worker.stop()
    assert await worker.stopped(10)
    assert completer.calls == ["save a"]


async def test_the_end_saves_the_newest_first_and_goes_on_after_a_refusal() -> None:
    worker, completer = await saving("a", "bad", "c", "a")
    worker.stop()
    assert await worker.stopped(10)
    assert completer.calls == ["save a", "save c", "save bad"]
    assert worker.saved == 2
