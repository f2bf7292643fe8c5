"""What the model's thread is given to do, and how the outcome gets back to the loop. Knows no model."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from remask.contract.errors import EngineError, RemaskError
from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.engine.service.completer import Completer, OnDraft, complete_with_drafts, forget, save

log = logging.getLogger(__name__)


class Job:
    """One piece of work on its way through the queue; settled on the loop it came from."""

    def __init__(self, document: str) -> None:
        self.document = document
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.cancelled = threading.Event()

    def run(self, completer: Completer) -> Any:
        """Do it, in the model's thread. Raises whatever the engine raises."""
        raise NotImplementedError

    def settle(self, outcome: Any) -> None:
        """Hand the outcome, or the error, to whoever waits. From any thread."""
        try:
            self.loop.call_soon_threadsafe(self._settle, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            log.debug("an outcome came after the end")

    def _settle(self, outcome: Any) -> None:
        if self.future.done():
            return
        if isinstance(outcome, RemaskError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Completion(Job):
    """Fill a hole; the time spent in the queue counts."""

    def __init__(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> None:
        super().__init__(request.document)
        self.request = request
        self.asked_at = time.monotonic()
        self._on_draft = on_draft

    def run(self, completer: Completer) -> CompletionResult:
        """Ask the completer, or not if the time is up already."""
        request = self.request
        waited_ms = int((time.monotonic() - self.asked_at) * 1000)
        if waited_ms >= request.deadline_ms:
            return CompletionResult(
                text="", reason=Reason.DEADLINE, language=request.language, detail="The time was spent in the queue."
            )
        left = dataclasses.replace(request, deadline_ms=request.deadline_ms - waited_ms)
        on_draft = None if self._on_draft is None else self._draft
        return complete_with_drafts(completer, left, self.cancelled.is_set, on_draft)

    def _draft(self, text: str) -> None:
        assert self._on_draft is not None
        _call(self.loop, self._on_draft, text)


class Closing(Job):
    """A document was closed: keep its state on disk if it is worth it, and let go of it."""

    def __init__(self, document: str, *, is_dirty: Callable[[], bool]) -> None:
        super().__init__(document)
        self._is_dirty = is_dirty

    def run(self, completer: Completer) -> None:
        """Save and forget."""
        if self._is_dirty():
            save(completer, self.document)
        forget(completer, self.document)


def outcome_of(job: Job, completer: Completer) -> Any:
    """What the job returns, or a RemaskError."""
    try:
        return job.run(completer)
    except Exception as error:
        return as_remask_error(error, "The engine failed on this request.")


def as_remask_error(error: Exception, message: str) -> RemaskError:
    """The error itself if it is ours, else one that says no more than its kind."""
    if isinstance(error, RemaskError):
        return error
    # The stack says where; the message of a foreign exception may hold source text and stays out of the log.
    log.error(
        "%s (%s)", message, type(error).__name__, exc_info=RemaskError("no text").with_traceback(error.__traceback__)
    )
    return EngineError(message, advice=f"It is a bug of Remask or too little memory: {type(error).__name__}.")


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        log.debug("a draft came after the end")
