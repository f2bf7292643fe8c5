"""Writes the code that a stub lacks: several candidates, each checked on the whole text, the best first.

Knows documents and the engine's door; the messages around it are in fill_actions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from remask.contract.errors import InputError
from remask.contract.messages import Candidate, CompletionRequest, CompletionResult, Extent, Purpose, Reason
from remask.grammars import Grammar, GrammarError
from remask.lsp_server.context import known_grammar
from remask.lsp_server.document import Document, Position
from remask.lsp_server.documents import key_of
from remask.lsp_server.fillcheck import objection
from remask.lsp_server.holes import stub_here
from remask.lsp_server.parsed import Stub
from remask.lsp_server.postprocess import drop_overlap
from remask.lsp_server.stubs import function_stub
from remask.lsp_server.uris import parse
from remask.lsp_server.workspace import Workspace

log = logging.getLogger(__name__)

POLICIES = ("default", "parallel")
"""How the engine is asked, one after the other, until there is a candidate that may be shown."""

TEXTLESS = frozenset({Reason.ENGINE, Reason.LOADING, Reason.DEADLINE, Reason.SYNTAX, Reason.DUPLICATE, Reason.LANGUAGE})
"""Reasons of an answer without a text that tell a user more than that there is none."""

LEAST_MS = 50
"""With less time than this the engine is not asked again."""


@dataclass(frozen=True, slots=True)
class Task:
    """A stub in one version of a document."""

    document: Document
    version: int
    edits: int
    text: str
    grammar: Grammar
    stub: Stub

    def position_at(self, offset: int) -> Position:
        """The client's position of an offset in that version, whatever has become of the document."""
        document = self.document
        return Document(document.uri, document.language, self.version, self.text, document.unit).position_at(offset)


@dataclass(frozen=True, slots=True)
class Filled:
    """Code for a task that may be shown; `text` takes the place of the stub's hole."""

    code: str
    text: str
    score: float


async def task_at(workspace: Workspace, uri: str, position: Position, *, whole: bool) -> Task | Reason:
    """What is to be written at a position: the body of the function there, or the code at that very place.

    The document may have changed when it is found; see `is_current`.
    """
    document = workspace.documents.get(uri)
    if (reason := workspace.obstacle(document)) is not None:
        return reason
    assert document is not None
    grammar = known_grammar(document.language)
    if grammar is None:
        return Reason.LANGUAGE
    if not grammar.has_bodies(parse(uri).path):
        return Reason.NO_STUB
    text, version, edits = document.normalised, document.version, document.edits
    find = function_stub if whole else stub_here
    offset = document.offset_at(position)

    def look() -> Stub | Reason:
        if document.edits != edits:  # it changed while looks at older texts were gone through
            return Reason.STALE
        return find(grammar, text, offset) or Reason.NO_STUB

    try:
        stub = await workspace.aside.run(look)
    except GrammarError:
        return Reason.LANGUAGE
    return stub if isinstance(stub, Reason) else Task(document, version, edits, text, grammar, stub)


async def write(
    workspace: Workspace, task: Task, on_draft: Callable[[str], None] | None = None
) -> list[Filled] | Reason:
    """Candidates for a task, the best first, or why there are none."""
    ends = time.monotonic() + workspace.options.fill_deadline_ms / 1000
    request = await _gathered(workspace, task)
    if isinstance(request, Reason):
        return request
    why = Reason.EMPTY
    for policy in POLICIES:
        left_ms = int((ends - time.monotonic()) * 1000)
        if left_ms < LEAST_MS:
            return Reason.DEADLINE if why is Reason.EMPTY else why
        result = await workspace.ask(replace(request, policy=policy, deadline_ms=left_ms), on_draft)
        found = await workspace.aside.run(_shown, task, result)
        if found:
            return found[: workspace.options.fill_candidates]
        why = _why_nothing(result)
    return why


def is_current(workspace: Workspace, task: Task) -> bool:
    """Whether the document is still what the task was made from."""
    document = workspace.documents.get(task.document.uri)
    if document is not task.document or not document.in_step:
        return False
    return (document.version, document.edits) == (task.version, task.edits)


async def _gathered(workspace: Workspace, task: Task) -> CompletionRequest | Reason:
    """All that the engine is told: the text around the hole, and who calls the function and how it is used."""
    options = workspace.options
    key = key_of(task.document.uri)
    before, after = workspace.notebooks.around(task.document.uri)
    prefix, suffix = task.stub.around(task.text)
    signature = task.text[task.stub.function[0] : task.stub.body_start]
    try:
        return CompletionRequest(
            document=key,
            language=task.document.language,
            prefix=before + prefix,
            suffix=suffix + after,
            extent=Extent.BLOCK,
            purpose=Purpose.FILL,
            max_tokens=options.fill_max_tokens,
            candidates=options.fill_candidates,
            guide=options.guide,
            context=await workspace.fill_context(key, task.stub.name, signature),
        )
    except InputError:
        return Reason.TOO_LARGE


def _shown(task: Task, result: CompletionResult) -> list[Filled]:
    """What may be shown of an answer, the best first, each code once."""
    candidates = [Candidate(result.text, result.reason, result.score), *result.others]
    checked = [filled for candidate in candidates if (filled := _checked(task, candidate)) is not None]
    log.info("a stub was filled: %d of %d candidates may be shown", len(checked), len(candidates))
    once = {filled.code: filled for filled in reversed(checked)}
    return sorted(once.values(), key=lambda filled: -filled.score)


def _checked(task: Task, candidate: Candidate) -> Filled | None:
    """The candidate without what follows already; None, with the reason in the log, if it may not be shown."""
    prefix, suffix = task.stub.around(task.text)
    begun = bool(prefix.rpartition("\n")[2].strip())
    text = candidate.text if begun else candidate.text.lstrip(" \t")  # the lead has indented it
    code = drop_overlap(text.rstrip(), prefix, suffix).rstrip()
    try:
        why = objection(task.grammar, task.text, task.stub, code)
    except GrammarError:
        why = "there is no parser"
    if why:
        log.info("a candidate is not shown: %s", why)
        return None
    return Filled(code, task.stub.lead + code + task.stub.tail, candidate.score)


def _why_nothing(result: CompletionResult) -> Reason:
    """The reason for an answer of which nothing may be shown."""
    if result.reason is Reason.ENGINE:
        log.warning("%s", result.detail)
    if result.text.strip() or any(other.text.strip() for other in result.others):
        return Reason.SYNTAX
    return result.reason if result.reason in TEXTLESS else Reason.EMPTY
