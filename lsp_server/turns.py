"""One generation at a time, and among those for typing the newest wins. Knows no engine and no LSP.

A new request for ghost text, and the work done ahead while idle, take the place of the one before them, whatever its
document: there is one cursor. What a user asked for explicitly (filling a function) waits its turn and is never thrown
away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class OvertakenError(Exception):
    """A newer request took this one's place."""


class Turns:
    """Who may use the engine."""

    def __init__(self) -> None:
        self._newest: asyncio.Task[Any] | None = None
        self._engine = asyncio.Lock()

    @property
    def idle(self) -> bool:
        """Whether nobody uses the engine or waits for it."""
        return self._newest is None and not self._engine.locked()

    @property
    def free(self) -> bool:
        """Whether nobody uses the engine."""
        return not self._engine.locked()

    def overtake(self) -> None:
        """End what runs for an older place of the cursor."""
        task, self._newest = self._newest, None
        if task is not None:
            task.cancel()

    def take(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start work in the place of the one before it."""
        self.overtake()
        task = self._newest = asyncio.ensure_future(work)
        task.add_done_callback(self._done)
        return task

    async def wait(self, task: asyncio.Task[T]) -> T:
        """What the work returns. Raises OvertakenError when other work has taken its place; cancelling ends it."""
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the client's own wish
            raise OvertakenError from None

    async def alone(self, work: Callable[[], Awaitable[T]], within_s: float | None = None) -> T:
        """Run `work` when no other work of this kind runs; raises TimeoutError where it cannot begin in time."""
        async with asyncio.timeout(within_s):
            await self._engine.acquire()
        try:
            return await work()
        finally:
            self._engine.release()

    def _done(self, task: asyncio.Task[Any]) -> None:
        if self._newest is task:
            self._newest = None
        if not task.cancelled():
            task.exception()  # it has been seen
