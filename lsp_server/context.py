"""From an open document and a cursor to what the engine is asked. Knows which files are never completed."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from remask.contract.errors import InputError
from remask.contract.messages import MAX_DOCUMENT_BYTES, CompletionRequest, Extent, Reason, Snippet
from remask.grammars import Grammar, GrammarError, grammar_for_language
from remask.lsp_server.document import Document, Position
from remask.lsp_server.documents import key_of
from remask.lsp_server.exclusions import Exclusions
from remask.lsp_server.options import ServerOptions

log = logging.getLogger(__name__)

Around = tuple[str, str]
"""Text before and after a document that belongs to it: the other cells of a notebook."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The entry that is selected in the editor's completion list: `text` would take the place of start to end."""

    start: Position
    end: Position
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in a document after so many `edits`. `prefix` and `suffix` are the document's own text around it."""

    document: Document
    edits: int
    cursor: Position
    prefix: str
    suffix: str
    around: Around = ("", "")
    selected: Selected | None = None

    @property
    def key(self) -> str:
        """The name under which engine and history know the document."""
        return key_of(self.document.uri)


def obstacle(document: Document | None, exclusions: Exclusions, options: ServerOptions) -> Reason | None:
    """Why nothing can be written in a document at all, or None."""
    if document is None:
        return Reason.UNKNOWN_DOCUMENT
    if exclusions.forbids(document.uri):
        return Reason.EXCLUDED
    if document.language in options.disabled_languages:
        return Reason.DISABLED
    if known_grammar(document.language) is None:
        return Reason.LANGUAGE
    return None if document.in_step else Reason.STALE


def place_in(
    document: Document, position: Position, around: Around = ("", ""), selected: Selected | None = None
) -> Place | Reason:
    """The place that a request means; with a selected entry, the place after it, as if it had been taken."""
    cursor = document.position(*document.clamp(position))
    if selected is None:
        prefix, suffix = document.split_at(position)
    else:
        start, end = document.clamp(selected.start), document.clamp(selected.end)
        if start[0] != end[0] or not selected.text or not start <= document.clamp(position) <= end:
            return Reason.STALE  # an entry of another moment
        prefix = document.split_at(selected.start)[0] + selected.text
        suffix = document.split_at(selected.end)[1]
    if len(prefix) + len(suffix) + len(around[0]) + len(around[1]) > MAX_DOCUMENT_BYTES:
        return Reason.TOO_LARGE
    return Place(document, document.edits, cursor, prefix, suffix, around, selected)


def build_request(
    place: Place, options: ServerOptions, *, candidates: int = 1, context: tuple[Snippet, ...] = (), draft: str = ""
) -> CompletionRequest | Reason:
    """What to ask the engine at a place, or the reason not to; `draft` is what may well stand there."""
    only_line = options.multiline == "never" or place.selected is not None
    try:
        return CompletionRequest(
            document=place.key,
            language=place.document.language,
            prefix=place.around[0] + place.prefix,
            suffix=place.suffix + place.around[1],
            extent=Extent.LINE if only_line else Extent.AUTO,
            max_tokens=options.max_tokens,
            deadline_ms=options.deadline_ms,
            candidates=candidates,
            context=context,
            draft=draft,
            guide=options.guide,
            name_facts=False,  # nobody sees them here
        )
    except InputError:
        return Reason.TOO_LARGE  # its bytes are counted there; all else has been checked


def known_grammar(language: str) -> Grammar | None:
    """The grammar for a language; None where there is none that works."""
    try:
        return grammar_for_language(language)
    except GrammarError as error:
        log.error("%s", error)
        return None
