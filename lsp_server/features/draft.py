"""A function's body while it is written: all of it in a message of our own, its last line in the progress.

Every editor shows the progress somewhere; our plugins draw the message where the body will stand.
"""

from __future__ import annotations

from typing import Any

from remask.grammars.fitting import Fitting
from remask.lsp_server.client import Client, Progress
from remask.lsp_server.features.fill import Task

DRAFT = "remask/didWriteDraft"
_LINE = 60  # characters in the progress


class ShownDraft:
    """The draft of one task; `number` tells it from others."""

    def __init__(self, client: Client, progress: Progress, task: Task, number: int) -> None:
        self._client = client
        self._progress = progress
        start = task.position_at(task.stub.hole[0])
        around = task.stub.around(task.text)
        self._fitting = Fitting(*around)
        before = around[0].rpartition("\n")[2]
        self._indent = before if not before.strip() else ""
        self._about: dict[str, Any] = {
            "textDocument": {"uri": task.document.uri, "version": task.version},
            "number": number,
            "position": {"line": start.line, "character": start.column},
        }
        if progress.token is not None:
            self._about["token"] = progress.token
        self._send(text="")

    def now(self, text: str) -> None:
        """Show the text as it stands now, indented as it will be."""
        text = self._fitting.fit(text)
        self._progress.report(text.rstrip().rpartition("\n")[2].strip()[:_LINE])
        self._send(text=self._indent + text)

    def end(self) -> None:
        """Take it away."""
        self._progress.end()
        self._send(text="", done=True)

    def _send(self, **values: Any) -> None:
        self._client.notify(DRAFT, {**self._about, **values})
