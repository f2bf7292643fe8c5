"""An engine without a model, for tests and for trying an editor out. Knows what it is told to answer.

`python -m remask.lsp_server.fake_engine TEXT` is the whole server, on standard input and output, with this engine.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.engine_client import OnState
from remask.lsp_server.engine_link import OnDraft
from remask.lsp_server.status import EngineState

Answer = Callable[[CompletionRequest], Awaitable[CompletionResult]]


class FakeEngine:
    """An EngineClient that answers with a text, or with whatever a coroutine function makes of the request.

    `requests` holds what it was asked, `cancelled` how many waits were cut off, `running` and `most` how many run now
    and ran at once, `closed_documents` what it was told to put away.
    """

    def __init__(self, answer: str | Answer = "pass", drafts: tuple[str, ...] = ()) -> None:
        self.on_state: OnState = lambda *_: None
        self._answer = answer
        self._drafts = drafts
        self.requests: list[CompletionRequest] = []
        self.closed_documents: list[str] = []
        self.cancelled = 0
        self.running = 0
        self.most = 0
        self.closed = False

    def start(self) -> None:
        """It is always ready."""
        self.on_state(EngineState.READY, "")

    async def complete(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> CompletionResult:
        """Answer as told."""
        self.requests.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        finished = False
        try:
            for draft in self._drafts if on_draft else ():
                assert on_draft is not None
                on_draft(draft)
                await asyncio.sleep(0)
            result = await self._result(request)
            finished = True
            return result
        finally:
            self.running -= 1
            self.cancelled += not finished

    async def _result(self, request: CompletionRequest) -> CompletionResult:
        if isinstance(self._answer, str):
            return CompletionResult(text=self._answer, reason=Reason.END, language=request.language, model="fake")
        return await self._answer(request)

    async def close_document(self, document: str) -> None:
        """Remember which."""
        self.closed_documents.append(document)

    async def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


if __name__ == "__main__":
    from remask.lsp_server.server import RemaskServer, main

    main(lambda: RemaskServer(lambda _: FakeEngine(sys.argv[1] if len(sys.argv) > 1 else "pass")))
