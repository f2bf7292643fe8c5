"""Writes the code that a stub lacks: several candidates, each checked on the whole text, the best first.

Knows documents and the engine's door; the messages around it are in fill_actions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from remask.contract.errors import InputError
from remask.contract.messages import Candidate, CompletionRequest, Extent, Purpose, Reason, Snippet
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


@dataclass(frozen=True, slots=True)
class Task:
    """A stub in one version of a document."""

    document: Document
    version: int
    text: str
    grammar: Grammar
    stub: Stub


@dataclass(frozen=True, slots=True)
class Filled:
    """Code for a task that may be shown; `text` takes the place of the stub's hole."""

    code: str
    text: str
    score: float


def task_at(workspace: Workspace, uri: str, position: Position, *, whole: bool) -> Task | Reason:
    """What is to be written at a position: the body of the function there, or the code at that very place."""
    document = workspace.documents.get(uri)
    if (reason := workspace.obstacle(document)) is not None:
        return reason
    assert document is not None
    grammar = known_grammar(document.language)
    if grammar is None:
        return Reason.LANGUAGE
    if parse(uri).path.endswith(".pyi"):  # it holds declarations only
        return Reason.EMPTY
    text = document.normalised
    find = function_stub if whole else stub_here
    try:
        stub = find(grammar, text, document.offset_at(position))
    except GrammarError:
        return Reason.LANGUAGE
    return Reason.EMPTY if stub is None else Task(document, document.version, text, grammar, stub)


async def write(
    workspace: Workspace, task: Task, on_draft: Callable[[str], None] | None = None
) -> list[Filled] | Reason:
    """Candidates for a task, the best first, or why there are none."""
    options = workspace.options
    ends = time.monotonic() + options.fill_deadline_ms / 1000
    found: dict[str, Filled] = {}
    reason = Reason.EMPTY
    context = await workspace.fill_context(key_of(task.document.uri), task.stub.name)
    for policy in POLICIES:
        left_ms = int((ends - time.monotonic()) * 1000)
        if found or left_ms < 50:
            break
        request = _request(workspace, task, context, policy, left_ms)
        if isinstance(request, Reason):
            return request
        result = await workspace.ask(request, on_draft)
        if result.reason is Reason.ENGINE and not found:
            log.warning("%s", result.detail)
            reason = result.reason
        texts = [Candidate(result.text, result.reason, result.score), *result.others]
        for candidate in texts:
            filled = _checked(task, candidate)
            if filled is not None:
                found.setdefault(filled.code, filled)
            elif candidate.text.strip():
                reason = Reason.SYNTAX
    ranked = sorted(found.values(), key=lambda filled: -filled.score)
    log.info("a stub was filled: %d candidates", len(ranked))
    return ranked[: options.fill_candidates] or reason


def is_current(workspace: Workspace, task: Task) -> bool:
    """Whether the document is still what the task was made from."""
    document = workspace.documents.get(task.document.uri)
    return document is task.document and document.version == task.version and document.in_step


def _request(
    workspace: Workspace, task: Task, context: tuple[Snippet, ...], policy: str, left_ms: int
) -> CompletionRequest | Reason:
    options = workspace.options
    before, after = workspace.notebooks.around(task.document.uri)
    prefix, suffix = task.stub.around(task.text)
    try:
        return CompletionRequest(
            document=key_of(task.document.uri),
            language=task.document.language,
            prefix=before + prefix,
            suffix=suffix + after,
            extent=Extent.BLOCK,
            policy=policy,
            purpose=Purpose.FILL,
            max_tokens=options.fill_max_tokens,
            deadline_ms=left_ms,
            candidates=options.fill_candidates,
            context=context,
        )
    except InputError:
        return Reason.TOO_LARGE


def _checked(task: Task, candidate: Candidate) -> Filled | None:
    """The candidate as it may be shown, or None with the reason in the log."""
    prefix, suffix = task.stub.around(task.text)
    code = drop_overlap(candidate.text.rstrip(), prefix, suffix).rstrip()
    try:
        why = objection(task.grammar, task.text, task.stub, code)
    except GrammarError:
        why = "there is no parser"
    if why:
        log.info("a candidate is not shown: %s", why)
        return None
    return Filled(code, task.stub.lead + code + task.stub.tail, candidate.score)
