"""The one thread that runs the model, and the queue before it. Knows neither HTTP nor the model.

One generation at a time: two would share the same cores or the same GPU and both would be late. What one server has
written ahead makes way for what another one's user waits for. What the model read of a document is put on disk when
the document is closed, when nothing is to do for a while, and at the end.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from remask.contract.errors import RemaskError
from remask.contract.messages import CompletionRequest, CompletionResult, Purpose
from remask.engine.service.completer import Completer, OnDraft, save
from remask.engine.service.jobs import Closing, Completion, Job, as_remask_error, outcome_of

log = logging.getLogger(__name__)

SAVE_AFTER_S = 30.0  # without anything to do
_SOON, _AHEAD, _END = range(3)  # the order in which the thread takes what waits


class ModelWorker:
    """Loads a Completer in a daemon thread of its own and feeds it one request after the other."""

    def __init__(self, load: Callable[[], Completer], *, save_after_s: float = SAVE_AFTER_S) -> None:
        self._load = load
        self._save_after_s = save_after_s
        self._jobs: queue.PriorityQueue[tuple[int, int, Job | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._loaded: asyncio.Future[Mapping[str, Any]] | None = None
        self._unsaved: dict[str, None] = {}  # documents, the one worked on last at the end
        self._ahead: Completion | None = None  # the request that runs, if nobody waits for it
        self.busy = False
        self.completed = 0
        self.skipped = 0  # cancelled before they started
        self.saved = 0

    @property
    def waiting(self) -> int:
        """How many requests stand in the queue."""
        return self._jobs.qsize()

    async def start(self) -> Mapping[str, Any]:
        """Load the model; returns its description. Raises RemaskError when it cannot be loaded."""
        self._loaded = asyncio.get_running_loop().create_future()
        self._thread.start()
        return await self._loaded

    async def complete(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> CompletionResult:
        """Queue the request and wait for its result; cancelling the wait cancels the generation. Raises RemaskError."""
        waits = request.purpose is not Purpose.SPECULATE
        done = self._queued(Completion(request, on_draft), _SOON if waits else _AHEAD)
        if waits and (ahead := self._ahead) is not None:  # one that begins just now sees what waits
            ahead.cancelled.set()
        result: CompletionResult = await done
        return result

    async def close_document(self, document: str) -> None:
        """Put what the model read of a document on disk, and let go of it. Raises RemaskError."""
        await self._queued(Closing(document, is_dirty=lambda: self._unsaved.pop(document, ...) is None))

    def stop(self) -> None:
        """End the thread after the job it is at and after saving what is not saved; does not wait."""
        self._put(_END, None)

    async def stopped(self, within_s: float) -> bool:
        """Wait for the thread's end, so long at most."""
        await asyncio.to_thread(self._thread.join, within_s)
        return not self._thread.is_alive()

    def _queued(self, job: Job, order: int = _SOON) -> Awaitable[Any]:
        """Queue a job, at once; awaiting what this returns waits for it."""
        self._put(order, job)

        async def done() -> Any:
            try:
                return await job.future
            finally:
                job.cancelled.set()

        return done()

    def _put(self, order: int, job: Job | None) -> None:
        self._jobs.put((order, next(self._numbers), job))

    def _user_waits(self) -> bool:
        with self._jobs.mutex:
            return any(order == _SOON and isinstance(job, Completion) for order, _, job in self._jobs.queue)

    def _run(self) -> None:
        completer = self._try_load()
        if completer is None:
            return
        while True:
            try:
                *_, job = self._jobs.get(timeout=self._save_after_s if self._unsaved else None)
            except queue.Empty:
                self._save_one(completer)
                continue
            if job is None:
                break
            self._do(job, completer)
        while self._unsaved:
            self._save_one(completer)

    def _do(self, job: Job, completer: Completer) -> None:
        if job.cancelled.is_set():
            self.skipped += 1
            return
        self.busy = True
        if isinstance(job, Completion) and job.request.purpose is Purpose.SPECULATE:
            self._ahead = job
            if self._user_waits():
                job.cancelled.set()
        outcome = outcome_of(job, completer)
        self._ahead = None
        self.busy = False
        if isinstance(job, Completion):
            self.completed += 1
            self._unsaved.pop(job.document, None)
            self._unsaved[job.document] = None
        job.settle(outcome)

    def _save_one(self, completer: Completer) -> None:
        document, _ = self._unsaved.popitem()
        try:
            save(completer, document)
            self.saved += 1
        except Exception as error:
            as_remask_error(error, "What was read of a document could not be saved.")

    def _try_load(self) -> Completer | None:
        assert self._loaded is not None
        loaded = self._loaded
        loop = loaded.get_loop()
        try:
            completer = self._load()
            description = completer.describe()
        except Exception as error:
            _call(loop, _fail, loaded, as_remask_error(error, "The model could not be loaded."))
            return None
        _call(loop, _succeed, loaded, description)
        return completer


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *args)


def _succeed(future: asyncio.Future[Mapping[str, Any]], value: Mapping[str, Any]) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Mapping[str, Any]], error: RemaskError) -> None:
    if not future.done():
        future.set_exception(error)
