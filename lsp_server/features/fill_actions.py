"""Function fill-in as an editor sees it: two code actions, a command, progress, and edits to look at first.

`textDocument/codeAction` offers, `codeAction/resolve` or the command writes. An edit carries the document's version, so
an editor refuses it if the text has changed; the same check is made here before it is sent.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from remask.contract.errors import InputError
from remask.contract.messages import Reason
from remask.contract.reasons import explain
from remask.lsp_server.client import Client
from remask.lsp_server.document import Position
from remask.lsp_server.features.draft import ShownDraft
from remask.lsp_server.features.fill import Filled, Task, is_current, task_at, write
from remask.lsp_server.reading import count, dict_of, text_of
from remask.lsp_server.workspace import Workspace

log = logging.getLogger(__name__)

KIND = f"{types.CodeActionKind.RefactorRewrite.value}.fill"
COMMAND = "remask.fill"
TITLES = {True: "Fill function body", False: "Fill the hole here"}


@dataclass(frozen=True, slots=True)
class _Wish:
    """Which stub: the one at a position, in a version if one is named, whole or not; `index` of its candidates."""

    uri: str
    position: Position
    whole: bool
    index: int = 0
    version: int | None = None

    def to_json(self) -> dict[str, Any]:
        place = {"line": self.position.line, "character": self.position.column}
        return {"uri": self.uri, "position": place, "whole": self.whole, "index": self.index, "version": self.version}

    @classmethod
    def read(cls, value: object) -> _Wish:
        """Inverse of `to_json`; raises InputError."""
        values = dict_of(value)
        place = dict_of(values.get("position"))
        position = Position(count(place.get("line")), count(place.get("character")))
        index, version = count(values.get("index", 0)), values.get("version")
        version = version if isinstance(version, int) else None
        return cls(text_of(values.get("uri")), position, values.get("whole") is not False, index, version)


class FillActions:
    """The feature's state: the candidates that were written last, and for which task."""

    def __init__(self, workspace: Workspace, client: Client) -> None:
        self._workspace = workspace
        self._client = client
        self._last: tuple[Task, list[Filled]] | None = None
        self._numbers = itertools.count(1)

    async def offer(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be filled at a place; cheap, since editors ask with each move of the cursor."""
        only = params.context.only
        if only is not None and not any(f"{KIND}.".startswith(f"{_value(kind)}.") for kind in only):
            return []
        position = Position(params.range.start.line, params.range.start.character)
        for whole in (True, False):
            task = await task_at(self._workspace, params.text_document.uri, position, whole=whole)
            if isinstance(task, Task):
                ready = len(self._ready(task)) or 1
                wish = _Wish(params.text_document.uri, position, whole, version=task.version)
                return [self._action(replace(wish, index=index), ready) for index in range(ready)]
            if task is Reason.STALE:
                break
        return []

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """Write the code of an offered action; without an edit if there is none, which the user is told."""
        wish = _read(action.data)
        found = await self._candidates(wish)
        if isinstance(found, Reason):
            self._say(found)
            return action
        task, candidates = found
        action.edit = self._edit(task, candidates[min(wish.index, len(candidates) - 1)])
        return action

    async def run(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """The command: write, let the editor make the edit unless told not to, and return all candidates.

        Its argument is the action's data, with `apply: false` to only get the candidates.
        """
        wish = _read(arguments[0] if arguments else None)
        found = await self._candidates(wish)
        if isinstance(found, Reason):
            self._say(found)
            return {"candidates": [], "applied": False, "reason": str(found)}
        task, candidates = found
        applied = False
        if dict_of(arguments[0]).get("apply") is not False:
            best = candidates[min(wish.index, len(candidates) - 1)]
            applied = await self._client.apply(self._edit(task, best), TITLES[wish.whole])
        shown = [{"text": one.text, "score": one.score, "edit": self._edit(task, one, ask=False)} for one in candidates]
        return {"candidates": shown, "applied": applied}

    def _say(self, reason: Reason) -> None:
        if reason is not Reason.CANCELLED:  # the user knows
            self._client.show(f"Remask has nothing to fill in. {explain(reason)}", types.MessageType.Info)

    async def _candidates(self, wish: _Wish) -> tuple[Task, list[Filled]] | Reason:
        document = self._workspace.documents.get(wish.uri)
        if document is not None and wish.version not in (None, document.version):
            raise JsonRpcContentModified("Another function may be there now.")
        task = await task_at(self._workspace, wish.uri, wish.position, whole=wish.whole)
        if isinstance(task, Reason):
            return task
        found = self._ready(task) or await self._write(task)
        if isinstance(found, Reason):
            return found
        if not is_current(self._workspace, task):
            raise JsonRpcContentModified("The document has changed meanwhile.")
        self._last = task, found
        return task, found

    async def _write(self, task: Task) -> list[Filled] | Reason:
        """Write while the draft is shown; cancelling the progress cancels the work."""
        shown: list[ShownDraft] = []
        begin = asyncio.Event()

        async def work() -> list[Filled] | Reason:
            await begin.wait()
            return await write(self._workspace, task, shown[0].now)

        job = asyncio.ensure_future(work())
        try:
            progress = await self._client.progress(f"Remask: filling {task.stub.name or 'a function'}", job.cancel)
            shown.append(ShownDraft(self._client, progress, task, next(self._numbers)))
            begin.set()
            return await job
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the request itself was cancelled
            return Reason.CANCELLED
        finally:
            job.cancel()
            for draft in shown:
                draft.end()

    def _ready(self, task: Task) -> list[Filled]:
        """The candidates that were written for this very task."""
        if self._last is None:
            return []
        last, candidates = self._last
        same = last.document is task.document and last.version == task.version
        return candidates if same and (last.edits, last.stub) == (task.edits, task.stub) else []

    def _action(self, wish: _Wish, of: int) -> types.CodeAction:
        title = TITLES[wish.whole] + (f": candidate {wish.index + 1} of {of}" if of > 1 else "")
        action = types.CodeAction(title=title, kind=KIND, data=wish.to_json())
        if "edit" not in self._client.properties("text_document.code_action.resolve_support"):
            action.command = types.Command(title=title, command=COMMAND, arguments=[wish.to_json()])
        return action

    def _edit(self, task: Task, filled: Filled, *, ask: bool = True) -> types.WorkspaceEdit:
        """The edit, versioned and, where the editor can, to be looked at before it is made."""
        document = task.document
        start, end = (task.position_at(offset) for offset in task.stub.hole)
        span = types.Range(types.Position(start.line, start.column), types.Position(end.line, end.column))
        if not self._client.can("workspace.workspace_edit.document_changes"):
            return types.WorkspaceEdit(changes={document.uri: [types.TextEdit(span, filled.text)]})
        item = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=task.version)
        if not ask or not self._client.has("workspace.workspace_edit.change_annotation_support"):
            return types.WorkspaceEdit(
                document_changes=[types.TextDocumentEdit(item, [types.TextEdit(span, filled.text)])]
            )
        label = f"Fill {task.stub.name or 'the function'}"
        note = types.ChangeAnnotation(label, needs_confirmation=self._workspace.options.fill_preview)
        edit = types.AnnotatedTextEdit(annotation_id=COMMAND, range=span, new_text=filled.text)
        return types.WorkspaceEdit(
            document_changes=[types.TextDocumentEdit(item, [edit])], change_annotations={COMMAND: note}
        )


def _read(value: object) -> _Wish:
    try:
        return _Wish.read(value)
    except InputError as error:
        raise JsonRpcInvalidParams(str(error)) from None


def _value(kind: Any) -> str:
    return str(getattr(kind, "value", kind))
