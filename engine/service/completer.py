"""What the service needs of an engine: one blocking call and a description. Knows no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from remask.contract.messages import CompletionRequest, CompletionResult


class Completer(Protocol):
    """Fills holes, one at a time. All calls come from the thread that made it."""

    def complete(self, request: CompletionRequest, cancelled: Callable[[], bool]) -> CompletionResult:
        """Fill the hole; look at `cancelled()` between forward passes. Raises RemaskError."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """What runs here (model, device, dtype), as plain JSON values."""
        ...
