"""From texts that were written for a place to the items that an editor shows. Knows what editors can draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lsprotocol import types

from remask.contract.messages import Reason
from remask.lsp_server.aside import Aside
from remask.lsp_server.context import Place
from remask.lsp_server.document import Document, Position
from remask.lsp_server.positions import Unit, size
from remask.lsp_server.postprocess import tidy
from remask.lsp_server.recheck import trimming_broke

MAX_SHOWN = 5_000
"""UTF-16 units; VS Code shows nothing at all for a longer text."""

ACCEPTED = "remask.accepted"
"""The command that an item carries: the editor runs it when the user has taken the item."""


@dataclass(frozen=True, slots=True)
class Ghost:
    """Texts to show at a place of the document, the best first; `number` names them."""

    number: int
    texts: tuple[str, ...]
    at: Position
    place: Place


Tidied = tuple[tuple[str, ...], Reason]
"""Texts that may be kept, and why nothing is if nothing is."""


async def tidied(texts: Iterable[str], place: Place, aside: Aside) -> Tidied:
    """What may be kept of texts that were written for a place.

    Trimming is the last change of a text, and what it has changed is judged after it: see recheck.
    """
    kept: list[str] = []
    reason = Reason.EMPTY
    for text in texts:
        left, why = tidy(text, place.prefix, place.suffix)
        if why is None and left != text.rstrip() and await aside.run(trimming_broke, place, text, left):
            why = Reason.SYNTAX
        if why is not None:
            reason = why
        elif left.strip() and left not in kept:
            kept.append(left)
    return tuple(kept), reason


def fitted(number: int, texts: tuple[str, ...], place: Place, now: Document | None) -> Ghost | Reason:
    """The texts as they may be shown now, in the document as it is now: what was typed meanwhile may start them."""
    if now is not place.document or not now.in_step:
        return Reason.STALE
    cursor = place.cursor
    if now.edits != place.edits:
        typed = None if place.selected else typed_since(now.normalised, place.prefix, place.suffix)
        texts = () if typed is None else tuple(text[len(typed) :] for text in texts if text.startswith(typed))
        if typed is None or not texts:
            return Reason.STALE
        cursor = now.position_at(len(place.prefix) + len(typed))
    texts = tuple(text for text in texts if text.strip())
    if not texts:
        return Reason.EMPTY
    extra = size(place.selected.text, Unit.UTF16) if place.selected else 0
    texts = tuple(text for text in texts if size(text, Unit.UTF16) + extra <= MAX_SHOWN)
    return Ghost(number, texts, cursor, place) if texts else Reason.TOO_LARGE


def typed_since(now: str, prefix: str, suffix: str) -> str | None:
    """What was typed between `prefix` and `suffix`, or None if anything else has changed in the document."""
    length = len(now) - len(prefix) - len(suffix)
    if length < 0 or not now.startswith(prefix) or not now.endswith(suffix):
        return None
    return now[len(prefix) : len(prefix) + length]


def items(ghost: Ghost, wanted: int) -> types.InlineCompletionList:
    """The answer for an editor: text put in at the cursor, or in place of what the selected entry replaces."""
    selected = ghost.place.selected
    start = selected.start if selected else ghost.at
    end = selected.end if selected else ghost.at
    span = types.Range(types.Position(start.line, start.column), types.Position(end.line, end.column))
    lead = selected.text if selected else ""
    uri = ghost.place.document.uri
    return types.InlineCompletionList(
        items=[
            types.InlineCompletionItem(
                insert_text=lead + text,
                range=span,
                command=types.Command(title="Accepted", command=ACCEPTED, arguments=[f"{ghost.number}.{index}", uri]),
            )
            for index, text in enumerate(ghost.texts[:wanted])
        ]
    )
