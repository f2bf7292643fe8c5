"""The one thread that runs the model, and the queue before it. Knows neither HTTP nor the model.

One generation at a time: two would share the same cores or the same GPU and both would be late.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from remask.contract.errors import EngineError, RemaskError
from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.engine.service.completer import Completer

log = logging.getLogger(__name__)


class _Job:
    """One request on its way through the queue; settled on the loop it came from."""

    def __init__(self, request: CompletionRequest) -> None:
        self.request = request
        self.asked_at = time.monotonic()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[CompletionResult] = self.loop.create_future()
        self.cancelled = threading.Event()

    def settle(self, outcome: CompletionResult | RemaskError) -> None:
        """Hand the outcome to whoever waits. From any thread."""
        try:
            self.loop.call_soon_threadsafe(self._settle, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            log.debug("an outcome came after the end")

    def _settle(self, outcome: CompletionResult | RemaskError) -> None:
        if self.future.done():
            return
        if isinstance(outcome, RemaskError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class ModelWorker:
    """Loads a Completer in a daemon thread of its own and feeds it one request after the other."""

    def __init__(self, load: Callable[[], Completer]) -> None:
        self._load = load
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._loaded: asyncio.Future[Mapping[str, Any]] | None = None
        self.busy = False
        self.completed = 0
        self.skipped = 0  # cancelled before they started

    @property
    def waiting(self) -> int:
        """How many requests stand in the queue."""
        return self._jobs.qsize()

    async def start(self) -> Mapping[str, Any]:
        """Load the model; returns its description. Raises RemaskError when it cannot be loaded."""
        self._loaded = asyncio.get_running_loop().create_future()
        self._thread.start()
        return await self._loaded

    async def complete(self, request: CompletionRequest) -> CompletionResult:
        """Queue the request and wait for its result; cancelling the wait cancels the generation. Raises RemaskError."""
        job = _Job(request)
        self._jobs.put(job)
        try:
            return await job.future
        finally:
            job.cancelled.set()

    def stop(self) -> None:
        """End the thread after the job it is at; does not wait."""
        self._jobs.put(None)

    def _run(self) -> None:
        completer = self._try_load()
        if completer is None:
            return
        while (job := self._jobs.get()) is not None:
            if job.cancelled.is_set():
                self.skipped += 1
                continue
            self.busy = True
            outcome = _run_job(completer, job)
            self.busy = False
            self.completed += 1
            job.settle(outcome)

    def _try_load(self) -> Completer | None:
        assert self._loaded is not None
        loaded = self._loaded
        loop = loaded.get_loop()
        try:
            completer = self._load()
            description = completer.describe()
        except Exception as error:
            _call(loop, _fail, loaded, _as_remask_error(error, "The model could not be loaded."))
            return None
        _call(loop, _succeed, loaded, description)
        return completer


def _run_job(completer: Completer, job: _Job) -> CompletionResult | RemaskError:
    request = job.request
    waited_ms = int((time.monotonic() - job.asked_at) * 1000)
    if waited_ms >= request.deadline_ms:
        return CompletionResult(
            text="", reason=Reason.DEADLINE, language=request.language, detail="The time was spent in the queue."
        )
    try:
        return completer.complete(
            dataclasses.replace(request, deadline_ms=request.deadline_ms - waited_ms), job.cancelled.is_set
        )
    except Exception as error:
        return _as_remask_error(error, "The engine failed on this request.")


def _as_remask_error(error: Exception, message: str) -> RemaskError:
    if isinstance(error, RemaskError):
        return error
    # The stack says where; the message of a foreign exception may hold source text and stays out of the log.
    log.error("%s (%s)", message, type(error).__name__, exc_info=_without_text(error))
    return EngineError(message, advice=f"It is a bug of Remask or too little memory: {type(error).__name__}.")


def _without_text(error: Exception) -> BaseException:
    return RemaskError("no text").with_traceback(error.__traceback__)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *args)


def _succeed(future: asyncio.Future[Mapping[str, Any]], value: Mapping[str, Any]) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Mapping[str, Any]], error: RemaskError) -> None:
    if not future.done():
        future.set_exception(error)
