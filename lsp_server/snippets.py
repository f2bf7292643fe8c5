"""The pieces of other files that go with a document's requests: chosen off the hot path, ready when they are needed.

They are chosen anew when a document is opened, visited or saved, never while someone types in it: another context makes
the engine read everything again. What an exclusion names is in none of them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from remask.contract.messages import MAX_CONTEXT_CHARACTERS, Snippet
from remask.grammars import grammar_for_path
from remask.lsp_server.choose import Here, Other, choose
from remask.lsp_server.context import known_grammar
from remask.lsp_server.document import Change, Document
from remask.lsp_server.documents import Event, key_of
from remask.lsp_server.folders import file_behind, path_of
from remask.lsp_server.function_context import function_snippets
from remask.lsp_server.index import Index

if TYPE_CHECKING:
    from remask.lsp_server.workspace import Workspace

log = logging.getLogger(__name__)

CHOOSE_WITHIN_S = 0.2
FUNCTION_WITHIN_S = 0.3
KEEP_S = 120.0  # for so long a choice is kept if another would show pieces of the same files
MAX_OPEN_CHARACTERS = 400_000
_EDITS = 6
_EDIT_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class _Choice:
    """What was chosen for a document, and when, by `time.monotonic`."""

    snippets: tuple[Snippet, ...] = ()
    at: float = 0.0


_NOTHING = _Choice()


class Snippets:
    """What was chosen for each open document, and what is known of where the user has been."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._rows: OrderedDict[str, int] = OrderedDict()  # documents, the one worked at last at the end
        self._edits: deque[tuple[str, str]] = deque(maxlen=_EDITS)
        self._chosen: dict[str, _Choice] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rules = 0  # how often they have changed
        self.index = Index(self._is_no_part)

    def start(self) -> None:
        """Begin to read the workspace."""
        if self._workspace.options.context:
            self.index.start()
            self.index.read(self._workspace.folders)

    def close(self) -> None:
        """End all work."""
        self.index.close()
        for task in self._tasks.values():
            task.cancel()

    def ready(self, key: str) -> tuple[Snippet, ...]:
        """What is chosen for a document. Looks at nothing; a document without any gets them soon."""
        if next(reversed(self._rows), None) != key or key not in self._chosen:
            self._visit(key)
        return self._chosen.get(key, _NOTHING).snippets

    async def for_function(self, key: str, name: str, signature: str) -> tuple[Snippet, ...]:
        """What to show with a function that is to be filled: what is its own, then the rest. Bounded in time."""
        document = self._workspace.documents.get(key)
        path = path_of(document.uri) if document else None
        own: list[Snippet] = []
        try:
            async with asyncio.timeout(FUNCTION_WITHIN_S):
                folders = self._workspace.folders
                own = await asyncio.to_thread(function_snippets, name, signature, path, self.index, folders)
        except TimeoutError:
            log.info("the callers of a function were not found in time")
        left = self._workspace.options.context_characters
        found: dict[str, Snippet] = {}
        for snippet in (*own, *self._chosen.get(key, _NOTHING).snippets):
            size = len(snippet.text) + len(snippet.path)
            if size <= left and snippet.text not in found:
                found[snippet.text] = snippet
                left -= size
        return tuple(found.values())

    def visited(self, uri: str) -> None:
        """The user looks at a document."""
        if self._workspace.documents.get(uri) is not None:
            self._visit(key_of(uri))

    def folders_changed(self, removed: Iterable[Path] = ()) -> None:
        """Folders, or the rules for them, have changed: what was chosen under the old ones is thrown away."""
        if gone := list(removed):
            self.index.read(gone)
        self._rules += 1
        self._chosen.clear()
        self._edits.clear()
        if self._workspace.options.context:
            self.start()

    def files_changed(self, uris: list[str]) -> None:
        """Files have changed on disk."""
        paths = [path for uri in uris if (path := path_of(uri)) is not None and self._is_ours(path)]
        if paths:
            self.index.read(paths)

    def heard(self, event: Event, document: Document, changes: list[Change]) -> None:
        """A document was opened, changed, saved or closed."""
        key = key_of(document.uri)
        if event is Event.CHANGED:
            self._edited(key, document, changes)
        elif event is Event.CLOSED:
            self._rows.pop(key, None)
            self._chosen.pop(key, None)
        else:
            self._visit(key)
            if event is Event.SAVED:
                self.files_changed([document.uri])

    def _edited(self, key: str, document: Document, changes: list[Change]) -> None:
        starts = [change.start.line for change in changes if change.start is not None]
        if not starts:
            return
        row = min(starts[-1], document.line_count - 1)
        self._rows[key] = row
        self._rows.move_to_end(key)
        if not self._is_hidden(document.uri):
            mark = f"{key}:{row}"
            if not self._edits or self._edits[-1][0] != mark:
                self._edits.append((mark, ""))
            self._edits[-1] = (mark, f"+ {document.line(row)[:_EDIT_CHARACTERS]}")

    def _visit(self, key: str) -> None:
        self._rows.setdefault(key, 0)
        self._rows.move_to_end(key)
        if self._workspace.options.context and key not in self._tasks:
            task = self._tasks[key] = asyncio.ensure_future(self._choose(key))
            task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _choose(self, key: str) -> None:
        rules = None
        while rules != self._rules:
            rules = self._rules
            await self._choose_once(key, rules)

    async def _choose_once(self, key: str, rules: int) -> None:
        workspace = self._workspace
        document = workspace.documents.get(key)
        if document is None or workspace.exclusions.forbids(document.uri):
            return
        path = path_of(document.uri)
        folder = workspace.folders.holding(path) if path else None
        here = Here(path, document.normalised, self._rows.get(key, 0), known_grammar(document.language))
        characters = min(workspace.options.context_characters, MAX_CONTEXT_CHARACTERS)
        others = self._others(key, document)
        edits = [line for mark, line in self._edits if not mark.startswith(f"{key}:")]
        deadline = time.monotonic() + CHOOSE_WITHIN_S
        root = f"{folder.as_posix()}/" if folder else ""
        chosen = await asyncio.to_thread(choose, here, others, edits, self.index, characters, deadline, root)
        if rules != self._rules or workspace.documents.get(key) is not document:
            return
        if not self._is_as_good(key, chosen):
            self._chosen[key] = _Choice(chosen, time.monotonic())

    def _is_as_good(self, key: str, new: tuple[Snippet, ...]) -> bool:
        """Whether what was chosen before says the same, but for edits since: then the engine need not read anew."""
        old = self._chosen.get(key)
        if old is None or not old.snippets or time.monotonic() - old.at > KEEP_S:
            return False
        return _sources(old.snippets) == _sources(new)

    def _others(self, key: str, document: Document) -> list[Other]:
        """The other open documents of its language that may be shown, the one worked at last first."""
        found: list[Other] = []
        for other_key in reversed(self._rows):
            other = self._workspace.documents.get(other_key)
            if other is None or other_key == key or other.language != document.language or self._is_hidden(other.uri):
                continue
            path = path_of(other.uri)
            name = self._workspace.folders.name_of(path) if path else other.uri.rpartition("/")[2]
            if other.size <= MAX_OPEN_CHARACTERS:
                found.append(Other(name, other.normalised, self._rows[other_key]))
        return found

    def _is_no_part(self, path: Path, is_folder: bool) -> bool:
        """Whether a file or folder is none of the workspace's, or not to be shown."""
        workspace = self._workspace
        return workspace.folders.holding(path) is None or workspace.exclusions.hides(path, is_folder=is_folder)

    def _is_hidden(self, uri: str) -> bool:
        path = file_behind(uri)
        return self._workspace.exclusions.forbids(uri) or (path is not None and self._workspace.exclusions.hides(path))

    def _is_ours(self, path: Path) -> bool:
        try:
            return self._workspace.folders.holding(path) is not None and grammar_for_path(path) is not None
        except ValueError:
            return False


def _sources(snippets: tuple[Snippet, ...]) -> set[tuple[str, str]]:
    return {(one.path, one.kind) for one in snippets if one.kind != "edits"}
