"""The editor as the server sees it: what it can do, and the messages that go to it. Knows no feature.

Every request to it is bounded in time: an editor that never answers stops nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException

log = logging.getLogger(__name__)

ANSWER_WITHIN_S = 2.0
APPLY_WITHIN_S = 300.0  # a preview may wait for the user

Notify = Callable[[str, Any], None]
Request = Callable[[str, Any], Awaitable[Any]]


class Client:
    """One connected editor."""

    def __init__(self, notify: Notify, request: Request, params: types.InitializeParams) -> None:
        self.notify = notify
        self._request = request
        self._capabilities = params.capabilities
        self.name = params.client_info.name if params.client_info else ""
        self._tokens = itertools.count(1)
        self._progress: dict[str, Progress] = {}

    def can(self, capability: str) -> bool:
        """Whether the client has said that it can do something, such as "window.work_done_progress"."""
        return bool(get_capability(self._capabilities, capability, False))

    def has(self, capability: str) -> bool:
        """Whether the client has said anything about a group of capabilities."""
        return get_capability(self._capabilities, capability, None) is not None

    def properties(self, capability: str) -> Sequence[str]:
        """The properties of something that the client can resolve later."""
        options = get_capability(self._capabilities, capability, None)
        return options.properties if options is not None else ()

    def show(self, sentence: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Show a sentence to the user."""
        self.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(kind, sentence))

    async def ask(self, method: str, params: Any, within_s: float = ANSWER_WITHIN_S) -> Any:
        """The answer to a request, or None for an error or none in time."""
        try:
            async with asyncio.timeout(within_s):
                return await self._request(method, params)
        except (JsonRpcException, TimeoutError) as error:
            log.info("the editor did not answer %s (%s)", method, type(error).__name__)
            return None

    async def configuration(self) -> Any:
        """The section "remask" of the user's settings."""
        items = [types.ConfigurationItem(section="remask")]
        answer = await self.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items))
        return answer[0] if isinstance(answer, list | tuple) and answer else None

    async def watch(self, *patterns: str) -> None:
        """Ask to be told of changed files whose names fit the patterns."""
        if not self.can("workspace.did_change_watched_files.dynamic_registration"):
            return
        watchers = [types.FileSystemWatcher(one) for one in patterns]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        await self._register("remask-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)

    async def watch_configuration(self) -> None:
        """Ask to be told when the user's settings change."""
        if self.can("workspace.did_change_configuration.dynamic_registration"):
            options = types.DidChangeConfigurationRegistrationOptions(section="remask")
            await self._register("remask-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)

    async def _register(self, name: str, method: str, options: Any) -> None:
        registration = types.Registration(name, method, options)
        await self.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams([registration]))

    async def apply(self, edit: types.WorkspaceEdit, label: str) -> bool:
        """Let the editor make an edit; False if it did not."""
        params = types.ApplyWorkspaceEditParams(edit=edit, label=label)
        answer = await self.ask(types.WORKSPACE_APPLY_EDIT, params, APPLY_WITHIN_S)
        return bool(getattr(answer, "applied", False))

    async def progress(
        self, title: str, on_cancel: Callable[[], object] | None = None, token: str | int | None = None
    ) -> Progress:
        """Begin to show progress, under the request's own token or a new one; silent if the client cannot."""
        if token is None and self.can("window.work_done_progress"):
            token = f"remask-{next(self._tokens)}"
            await self.ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(token))
        progress = Progress(self, token, on_cancel)
        if token is not None:
            self._progress[str(token)] = progress
            progress.send(types.WorkDoneProgressBegin(title=title, cancellable=on_cancel is not None))
        return progress

    def cancelled(self, token: object) -> None:
        """The user has cancelled what shows this progress."""
        progress = self._progress.get(str(token))
        if progress is not None and progress.on_cancel is not None:
            progress.on_cancel()

    def forget(self, progress: Progress) -> None:
        """The progress has ended."""
        self._progress.pop(str(progress.token), None)


class Progress:
    """Something that goes on, shown in the editor. Without a token nothing is shown."""

    def __init__(self, client: Client, token: str | int | None, on_cancel: Callable[[], object] | None) -> None:
        self.token = token
        self.on_cancel = on_cancel
        self._client = client

    def report(self, message: str) -> None:
        """Show how far it is."""
        self.send(types.WorkDoneProgressReport(message=message))

    def end(self, message: str = "") -> None:
        """Take it away."""
        self.send(types.WorkDoneProgressEnd(message=message or None))
        self._client.forget(self)

    def send(self, value: Any) -> None:
        """Send one step."""
        if self.token is not None:
            self._client.notify(types.PROGRESS, types.ProgressParams(self.token, value))
