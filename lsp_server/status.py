"""What the user is told about the server: `remask/didChangeStatus`, and a window once for what needs attention.

Knows the states of the engine and the reasons of empty answers, never how they come about.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from remask.contract.messages import Reason
from remask.contract.reasons import explain

METHOD = "remask/didChangeStatus"

Notify = Callable[[str, dict[str, Any]], None]
ShowOnce = Callable[[str], None]


class EngineState(StrEnum):
    """Where the engine's process is in its life."""

    STARTING = "starting"
    READY = "ready"
    GONE = "gone"  # it died, and is started again
    FAILED = "failed"  # it cannot start, or died too often
    UNLOADED = "unloaded"  # idle for long: it starts again with the next request


_KINDS = {EngineState.GONE: "Warning", EngineState.FAILED: "Error"}
_WORDS = {
    EngineState.STARTING: "The model is being loaded.",
    EngineState.READY: "Ready.",
    EngineState.GONE: "The engine died and is started again.",
    EngineState.UNLOADED: "The model was put away; it is loaded again when it is needed.",
}
_INACTIVE = frozenset({Reason.DISABLED, Reason.EXCLUDED, Reason.LANGUAGE, Reason.TOO_LARGE, Reason.UNKNOWN_DOCUMENT})


class Status:
    """Sends what has changed, and nothing twice."""

    def __init__(self, notify: Notify, show: ShowOnce) -> None:
        self._notify = notify
        self._show = show
        self._shown: set[str] = set()
        self._sent: dict[str, Any] = {}
        self.state = EngineState.STARTING
        self._detail = ""
        self._working = 0
        self._reason: Reason | None = None

    def engine(self, state: EngineState, detail: str = "") -> None:
        """The engine's process changed; `detail` is a sentence for the user."""
        self.state, self._detail = state, detail
        if state is EngineState.FAILED and detail not in self._shown:
            self._shown.add(detail)
            self._show(detail)
        self._send()

    def begin(self) -> None:
        """The engine was asked for something."""
        self._working += 1
        self._send()

    def end(self) -> None:
        """It answered, or nobody waits any more."""
        self._working -= 1
        self._send()

    def answered(self, reason: Reason | None) -> None:
        """A request was answered; `reason` says why with nothing."""
        self._reason = reason
        self._send()

    def _send(self) -> None:
        values = self._values()
        if values != self._sent:
            self._sent = values
            self._notify(METHOD, values)

    def _values(self) -> dict[str, Any]:
        kind = _KINDS.get(self.state, "Normal")
        message = self._detail or _WORDS.get(self.state, "")
        if kind == "Normal" and self._reason in _INACTIVE:
            kind, message = "Inactive", explain(self._reason)
        elif kind == "Normal" and self._reason is not None:
            message = f"{message} No ghost text: {explain(self._reason)}"
        busy = self._working > 0 or self.state in (EngineState.STARTING, EngineState.GONE)
        values: dict[str, Any] = {"busy": busy, "kind": kind, "message": message}
        return values if self._reason is None else {**values, "reason": str(self._reason)}
