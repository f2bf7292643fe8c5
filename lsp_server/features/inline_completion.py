"""`textDocument/inlineCompletion`: ghost text. Knows documents and the engine's door, never how code is written.

One request a document: a newer one takes the place of an older one, whether or not the client cancels. An answer is for
the version that it was asked for; if the user has typed its beginning meanwhile, the rest is offered, else nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from lsprotocol import types

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.context import build_request
from remask.lsp_server.document import Document, Position
from remask.lsp_server.documents import DocumentStore, key_of
from remask.lsp_server.engine_client import EngineClient
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.positions import Unit, size
from remask.lsp_server.postprocess import tidy

log = logging.getLogger(__name__)

MAX_SHOWN = 5_000
"""UTF-16 units; VS Code shows nothing at all for a longer text."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A text to show at a place of the document."""

    text: str
    at: Position


_OVERTAKEN = frozenset({Reason.CANCELLED, Reason.STALE})
"""Reasons that say nothing about the place where the cursor is now."""


class InlineCompletion:
    """The feature's state: which document waits for which answer.

    `keeps_on_null` is for clients that go on showing, and accepting, their last ghost text after a null (Neovim 0.12):
    they get an empty list, which they take for what null means.
    """

    def __init__(
        self, documents: DocumentStore, engine: EngineClient, options: ServerOptions, *, keeps_on_null: bool = False
    ) -> None:
        self._documents = documents
        self._engine = engine
        self._options = options
        self._keeps_on_null = keeps_on_null
        self._running: dict[str, asyncio.Task[CompletionResult]] = {}

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """Answer one request; None, with the reason in the log, where there is nothing to show."""
        position = Position(params.position.line, params.position.character)
        outcome = await self._complete(params.text_document.uri, position)
        if isinstance(outcome, Reason):
            log.info("nothing to show: %s", outcome)
            clear = self._keeps_on_null and outcome not in _OVERTAKEN
            return types.InlineCompletionList(items=[]) if clear else None
        log.info("shown: %d characters", len(outcome.text))
        cursor = types.Position(outcome.at.line, outcome.at.column)
        item = types.InlineCompletionItem(insert_text=outcome.text, range=types.Range(cursor, cursor))
        return types.InlineCompletionList(items=[item])

    async def _complete(self, uri: str, position: Position) -> Shown | Reason:
        # No await before this is done: what is read here belongs to the request.
        self._cancel_previous(uri)
        document = self._documents.get(uri)
        if document is None:
            return Reason.UNKNOWN_DOCUMENT
        request = build_request(document, position, self._options)
        if isinstance(request, Reason):
            return request
        asked = (document.version, document.position(*document.clamp(position)))
        result = await self._ask(uri, request)
        if not result.text:
            return result.reason
        return self._fit(uri, document, asked, request, result.text)

    def _cancel_previous(self, uri: str) -> None:
        task = self._running.pop(key_of(uri), None)
        if task is not None:
            task.cancel()

    async def _ask(self, uri: str, request: CompletionRequest) -> CompletionResult:
        task = asyncio.ensure_future(self._engine.complete(request))
        self._running[key_of(uri)] = task
        try:
            result = await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the client's wish: it gets the error that the protocol asks for
            return CompletionResult(text="", reason=Reason.CANCELLED, language=request.language)
        finally:
            if self._running.get(key_of(uri)) is task:
                del self._running[key_of(uri)]
        _log_result(result)
        return result

    def _fit(
        self, uri: str, asked_of: Document, asked: tuple[int, Position], request: CompletionRequest, text: str
    ) -> Shown | Reason:
        """The result as it may be shown now, in the document as it is now."""
        text, reason = tidy(text, request.prefix, request.suffix)
        if reason is not None:
            return reason
        document = self._documents.get(uri)
        version, cursor = asked
        if document is not asked_of or not document.in_step:
            return Reason.STALE
        if document.version != version:
            typed = typed_since(document.normalised, request.prefix, request.suffix)
            if typed is None or not text.startswith(typed):
                return Reason.STALE
            text = text[len(typed) :]
            cursor = document.position_at(len(request.prefix) + len(typed))
        if not text.strip():
            return Reason.EMPTY
        return Shown(text, cursor) if size(text, Unit.UTF16) <= MAX_SHOWN else Reason.TOO_LARGE


def typed_since(now: str, prefix: str, suffix: str) -> str | None:
    """What was typed between `prefix` and `suffix`, or None if anything else has changed in the document."""
    length = len(now) - len(prefix) - len(suffix)
    if length < 0 or not now.startswith(prefix) or not now.endswith(suffix):
        return None
    return now[len(prefix) : len(prefix) + length]


def _log_result(result: CompletionResult) -> None:
    if result.reason is Reason.ENGINE:
        log.warning("%s", result.detail)
        return
    log.info(
        "the engine ended with %s: %d tokens in %d passes, %d of %d prompt tokens run, %.0f ms",
        result.reason,
        result.tokens,
        result.forwards,
        result.prompt.run,
        result.prompt.total,
        result.ms.total,
    )
