"""What the features share: documents, folders, options, the engine and what is known of the user's last minutes.

Knows no LSP message; the server fills it from them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import replace

from remask.contract.messages import CompletionRequest, CompletionResult, Purpose, Reason, Snippet
from remask.lsp_server.aside import Aside
from remask.lsp_server.context import obstacle
from remask.lsp_server.document import Change, Document
from remask.lsp_server.documents import DocumentStore, Event, key_of
from remask.lsp_server.engine_client import LATE_S, EngineClient
from remask.lsp_server.engine_link import OnDraft
from remask.lsp_server.exclusions import Exclusions
from remask.lsp_server.folders import Folders
from remask.lsp_server.history import History
from remask.lsp_server.notebooks import Notebooks
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.pace import Pace
from remask.lsp_server.positions import Unit
from remask.lsp_server.snippets import Snippets
from remask.lsp_server.statistics import Statistics
from remask.lsp_server.status import Status
from remask.lsp_server.turns import Turns


class Workspace:
    """One client's workspace."""

    def __init__(self, engine: EngineClient, options: ServerOptions, status: Status, unit: Unit) -> None:
        self.engine = engine
        self.engine_is_chosen = asyncio.Event()  # requests wait while the options that make it are not known
        self.engine_is_chosen.set()
        self.status = status
        self.documents = DocumentStore(unit)
        self.notebooks = Notebooks(self.documents)
        self.folders = Folders()
        self.turns = Turns()
        self.aside = Aside()
        self.judging = Aside()  # of ghost text, which stands behind no look that somebody else has asked for
        self.pace = Pace()
        self.history = History()
        self.statistics = Statistics(enabled=options.statistics)
        self._closing: set[asyncio.Task[None]] = set()
        self.set_options(options)
        self.snippets = Snippets(self)
        self.documents.listeners += [self._heard, self.statistics.heard, self.snippets.heard]

    def set_options(self, options: ServerOptions) -> None:
        """Take other options from now on."""
        self.options = options
        self.exclusions = Exclusions(self.folders, options.exclude)
        self.statistics.enabled = options.statistics

    def obstacle(self, document: Document | None) -> Reason | None:
        """Why nothing can be written in a document, or None."""
        return obstacle(document, self.exclusions, self.options)

    def context(self, key: str) -> tuple[Snippet, ...]:
        """The pieces of other files that the model may see with this document; ready, never waited for."""
        return self.snippets.ready(key) if self.options.context else ()

    async def fill_context(self, key: str, name: str, signature: str) -> tuple[Snippet, ...]:
        """The same for a function that is to be filled: who calls it, and what its signature names, comes first."""
        return await self.snippets.for_function(key, name, signature) if self.options.context else ()

    async def ask(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> CompletionResult:
        """Ask the engine when nobody else does, within the request's time whatever engine it is.

        For ghost text waiting counts too: it is of no use once its time is up, whatever is being filled.
        """
        if request.purpose is not Purpose.COMPLETE or self.turns.free:
            return await self.turns.alone(lambda: self._ask(request, on_draft))
        ends = time.monotonic() + request.deadline_ms / 1000

        def rest() -> Awaitable[CompletionResult]:
            left_ms = max(1, int((ends - time.monotonic()) * 1000))
            return self._ask(replace(request, deadline_ms=left_ms), on_draft)

        try:
            return await self.turns.alone(rest, request.deadline_ms / 1000)
        except TimeoutError:
            return CompletionResult(text="", reason=Reason.DEADLINE, language=request.language)

    async def _ask(self, request: CompletionRequest, on_draft: OnDraft | None) -> CompletionResult:
        shown = request.purpose is not Purpose.SPECULATE
        started = time.monotonic()
        if shown:
            self.status.begin()
        try:
            async with asyncio.timeout(request.deadline_ms / 1000 + 2 * LATE_S):
                await self.engine_is_chosen.wait()
                result = await self.engine.complete(request, on_draft)
        except TimeoutError:
            return CompletionResult(text="", reason=Reason.DEADLINE, language=request.language)
        finally:
            if shown:
                self.status.end()
        spent = time.monotonic() - started
        counts = spent > 1.0 if result.reason is Reason.ENGINE else result.reason is not Reason.LOADING
        if request.purpose is Purpose.COMPLETE and counts:
            self.pace.answered(spent)
        return result

    def _heard(self, event: Event, document: Document, _: list[Change]) -> None:
        if event is Event.CHANGED:
            self.pace.typed(time.monotonic())
        if event in (Event.OPENED, Event.CLOSED):
            self.history.forget(key_of(document.uri))
        if event is Event.CLOSED and not self.exclusions.forbids(document.uri):
            task = asyncio.ensure_future(self.engine.close_document(key_of(document.uri)))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
