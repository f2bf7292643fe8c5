"""What the service needs of an engine: one blocking call and a description. Knows no model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from remask.contract.messages import CompletionRequest, CompletionResult

OnDraft = Callable[[str], None]


class Completer(Protocol):
    """Fills holes, one at a time. All calls come from the thread that made it.

    It may have more, and the service uses what is there: an argument `on_draft` of `complete`, called with the text as
    far as it stands while it is being written; `save(document)`, which puts the document's state on disk; and
    `forget(document)`, which lets go of it.
    """

    def complete(self, request: CompletionRequest, cancelled: Callable[[], bool]) -> CompletionResult:
        """Fill the hole; look at `cancelled()` between forward passes. Raises RemaskError."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """What runs here (model, device, dtype), as plain JSON values."""
        ...


def complete_with_drafts(
    completer: Completer, request: CompletionRequest, cancelled: Callable[[], bool], on_draft: OnDraft | None
) -> CompletionResult:
    """Fill the hole and hand on what is written meanwhile, if the engine tells."""
    if on_draft is not None and "on_draft" in inspect.signature(completer.complete).parameters:
        return completer.complete(request, cancelled, on_draft=on_draft)  # type: ignore[call-arg]
    return completer.complete(request, cancelled)


def save(completer: Completer, document: str) -> None:
    """Put a document's state on disk, if the engine can. Raises RemaskError."""
    keep = getattr(completer, "save", None)
    if keep is not None:
        keep(document)


def forget(completer: Completer, document: str) -> None:
    """Let go of a document's state, if the engine can."""
    drop = getattr(completer, "forget", None)
    if drop is not None:
        drop(document)
