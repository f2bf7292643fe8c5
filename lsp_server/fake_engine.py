"""An engine without a model, for tests and for trying an editor out. Knows what it is told to answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from remask.contract.messages import CompletionRequest, CompletionResult, Reason

Answer = Callable[[CompletionRequest], Awaitable[CompletionResult]]


class FakeEngine:
    """An EngineClient that answers with a text, or with whatever a coroutine function makes of the request.

    `requests` holds what it was asked, `cancelled` how many waits were cut off.
    """

    def __init__(self, answer: str | Answer = "pass") -> None:
        self._answer = answer
        self.requests: list[CompletionRequest] = []
        self.cancelled = 0
        self.closed = False

    def start(self) -> None:
        """It is always ready."""

    async def complete(self, request: CompletionRequest) -> CompletionResult:
        """Answer as told."""
        self.requests.append(request)
        if isinstance(self._answer, str):
            return CompletionResult(text=self._answer, reason=Reason.END, language=request.language, model="fake")
        finished = False
        try:
            result = await self._answer(request)
            finished = True
            return result
        finally:
            self.cancelled += not finished

    async def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True
