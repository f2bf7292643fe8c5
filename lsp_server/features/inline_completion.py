"""`textDocument/inlineCompletion`: ghost text. Knows documents and the engine's door, never how code is written.

The newest request wins, whether or not the client cancels the older ones, and an answer is for the version that it was
asked for; if the user has typed its beginning meanwhile, the rest is offered, else nothing. What was written lately is
offered again while it is typed, word by word or letter by letter, and while nothing else is to do the text after the
offered one is prepared.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace

from lsprotocol import types

from remask.contract.messages import CompletionRequest, CompletionResult, Purpose, Reason
from remask.lsp_server.context import Place, Selected, build_request, place_in
from remask.lsp_server.document import Document, Position
from remask.lsp_server.features.ghost import Ghost, Tidied, fitted, items, tidied
from remask.lsp_server.features.old_text import OldText
from remask.lsp_server.turns import OvertakenError
from remask.lsp_server.workspace import Workspace

log = logging.getLogger(__name__)

SPECULATE_AFTER_S = 0.15
READ_ON_FACTOR = 4  # times the deadline, for a file that could not be read in time
_OVERTAKEN = frozenset({Reason.CANCELLED, Reason.STALE})
"""Reasons that say nothing about the place where the cursor is now."""
_LATE = frozenset({Reason.DEADLINE, Reason.LOADING})
"""Reasons that leave what was offered before at the same place as good as it was."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What is being written for the place at the end of an offered text. `now` ends the wait before it."""

    key: str
    prefix: str
    suffix: str
    task: asyncio.Task[None]
    now: asyncio.Event


class InlineCompletion:
    """The feature's state.

    `keeps_on_null` is for clients that go on showing, and accepting, their last ghost text after a null (Neovim 0.12):
    they get an empty list, which they take for what null means.
    """

    def __init__(self, workspace: Workspace, *, keeps_on_null: bool = False) -> None:
        self._workspace = workspace
        self._keeps_on_null = keeps_on_null
        self._ahead: _Ahead | None = None
        self._old = OldText()

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """Answer one request; None, with the reason in the log, where there is nothing to show."""
        invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
        outcome = await self._complete(params, invoked)
        workspace = self._workspace
        if isinstance(outcome, Reason):
            log.info("nothing to show: %s", outcome)
            if outcome not in _OVERTAKEN:
                workspace.status.answered(outcome)
            clear = self._keeps_on_null and outcome not in _OVERTAKEN
            return types.InlineCompletionList(items=[]) if clear else None
        wanted = workspace.options.candidates if invoked else workspace.options.automatic_candidates
        texts = outcome.texts[:wanted]
        log.info("shown: %s", ", ".join(f"{len(text)} characters" for text in texts))
        if workspace.options.log_text:
            log.info("its text: %r", texts)
        workspace.status.answered(None)
        workspace.statistics.offered(outcome.number, outcome.place.key, outcome.at, outcome.texts)
        self._prepare(outcome)
        return items(outcome, wanted)

    async def _complete(self, params: types.InlineCompletionParams, invoked: bool) -> Ghost | Reason:
        # No await before the place is known: what is read here belongs to the request.
        place = self._place(params, invoked)
        ahead = self._joined(place)
        if ahead is None:
            self._workspace.turns.overtake()
        if isinstance(place, Reason):
            return place
        try:
            if not invoked:
                if ahead is not None:
                    await self._workspace.turns.wait(ahead.task)
                if (ghost := self._remembered(place)) is not None:
                    return ghost
            outcome = await self._written(place, invoked)
            if invoked and outcome in _LATE:
                return self._remembered(place) or outcome
            return outcome
        except OvertakenError:
            return Reason.CANCELLED

    def _place(self, params: types.InlineCompletionParams, invoked: bool) -> Place | Reason:
        workspace = self._workspace
        uri = params.text_document.uri
        document = workspace.documents.get(uri)
        if (reason := workspace.obstacle(document)) is not None:
            return reason
        if not invoked and not workspace.options.automatic:
            return Reason.DISABLED
        assert document is not None
        position = Position(params.position.line, params.position.character)
        return place_in(document, position, workspace.notebooks.around(uri), _selected(params.context))

    def _joined(self, place: Place | Reason) -> _Ahead | None:
        """The work done ahead, if it is for this very place and still going on."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or isinstance(place, Reason) or ahead.task.done():
            return None
        if (ahead.key, ahead.prefix, ahead.suffix) != (place.key, place.prefix, place.suffix):
            return None
        ahead.now.set()
        return ahead

    def _remembered(self, place: Place) -> Ghost | None:
        """What is left of a text written lately."""
        found = self._workspace.history.find(place.key, place.prefix, place.suffix)
        if found is None:
            return None
        ghost = fitted(*found, place, self._workspace.documents.get(place.document.uri))
        return ghost if isinstance(ghost, Ghost) else None

    async def _written(self, place: Place, invoked: bool) -> Ghost | Reason:
        """Let the engine write."""
        workspace = self._workspace
        options = workspace.options
        wanted = options.candidates if invoked else options.automatic_candidates
        draft = self._old.draft(place)
        request = build_request(place, options, candidates=wanted, context=workspace.context(place.key), draft=draft)
        if isinstance(request, Reason):
            return request
        delay = 0.0 if invoked else self._delay(place)
        result, (texts, reason) = await workspace.turns.wait(
            workspace.turns.take(self._ask_after(delay, request, place))
        )
        self._old.remember(place, texts[0] if texts else "")
        if not result.text:
            self._read_on(place, request, result)
            return result.reason
        if not texts:
            return reason
        number = workspace.history.keep(place.key, place.prefix, place.suffix, texts)
        return fitted(number, texts, place, workspace.documents.get(place.document.uri))

    def _delay(self, place: Place) -> float:
        options = self._workspace.options
        longest = options.debounce_ms / 1000
        if options.debounce == "off":
            return 0.0
        if options.debounce == "fixed":
            return longest
        return self._workspace.pace.delay(time.monotonic(), place.prefix[-1:], longest)

    async def _ask_after(
        self, delay: float, request: CompletionRequest, place: Place
    ) -> tuple[CompletionResult, Tidied]:
        if delay:
            await asyncio.sleep(delay)
        result = await self._workspace.ask(request)
        _log_result(result)
        texts = [result.text, *(other.text for other in result.others)]
        return result, await tidied(texts, place, self._workspace.judging)

    def _prepare(self, ghost: Ghost) -> None:
        """Begin to write what may be asked next: the text after the offered one."""
        workspace, place = self._workspace, ghost.place
        if not workspace.options.speculate or place.selected or not workspace.turns.idle:
            return
        document: Document = place.document
        before, after = document.split_at(ghost.at)
        after_it = replace(place, prefix=before + ghost.texts[0], suffix=after)
        if workspace.history.find(place.key, after_it.prefix, after) is not None:
            return
        request = build_request(after_it, workspace.options, context=workspace.context(place.key))
        if isinstance(request, Reason):
            return
        now = asyncio.Event()
        work = self._write_ahead(after_it, replace(request, purpose=Purpose.SPECULATE), now)
        self._ahead = _Ahead(place.key, after_it.prefix, after, workspace.turns.take(work), now)

    def _read_on(self, place: Place, request: CompletionRequest, result: CompletionResult) -> None:
        """Where the time was up before anything was written, let the engine go on while nothing else is to do.

        A slow machine reads a newly opened file for longer than a user waits; the next request finds it read.
        """
        if result.reason is not Reason.DEADLINE or not self._workspace.options.speculate or place.selected:
            return
        now = asyncio.Event()
        deadline_ms = min(READ_ON_FACTOR * request.deadline_ms, 600_000)
        work = self._write_ahead(place, replace(request, purpose=Purpose.SPECULATE, deadline_ms=deadline_ms), now)
        self._ahead = _Ahead(place.key, place.prefix, place.suffix, self._workspace.turns.take(work), now)

    async def _write_ahead(self, place: Place, request: CompletionRequest, now: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(SPECULATE_AFTER_S):
                await now.wait()
        except TimeoutError:
            pass
        result = await self._workspace.ask(request)
        texts, _ = await tidied([result.text], place, self._workspace.judging)
        if texts:
            self._workspace.history.keep(place.key, place.prefix, place.suffix, texts)


def _selected(context: types.InlineCompletionContext) -> Selected | None:
    info = context.selected_completion_info
    if info is None:
        return None
    start, end = info.range.start, info.range.end
    return Selected(Position(start.line, start.character), Position(end.line, end.character), info.text)


def _log_result(result: CompletionResult) -> None:
    if result.reason is Reason.ENGINE:
        log.warning("%s", result.detail)
        return
    if result.reason is Reason.LOADING:
        log.info("%s", result.detail)
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
