"""The options over a session's life: from the start, from the editor's settings, and when they change.

An option that the engine was started with starts another engine; all others hold from the next request on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from remask.grammars import grammars
from remask.lsp_server.client import Client, Progress
from remask.lsp_server.engine_client import EngineClient
from remask.lsp_server.options import ENGINE_OPTIONS, ServerOptions
from remask.lsp_server.status import EngineState
from remask.lsp_server.workspace import Workspace

log = logging.getLogger(__name__)

_LOADING = frozenset({EngineState.STARTING})


class Settings:
    """Holds the options of a workspace up to date. `base` are those from the start; later ones are laid over them."""

    def __init__(
        self,
        workspace: Workspace,
        client: Client,
        make_engine: Callable[[ServerOptions], EngineClient],
        base: ServerOptions,
        complaints: list[str],
    ) -> None:
        self._workspace = workspace
        self._client = client
        self._make_engine = make_engine
        self._base = base
        self._complaints = complaints
        self._said: set[str] = set()
        self._loading: Progress | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._engine_options = _engine_values(workspace.options)  # of the engine that there is
        self._started = False
        self._changing = asyncio.Lock()
        self._showing = asyncio.Lock()
        workspace.engine.on_state = self._on_state

    def start(self) -> None:
        """Say what is wrong with the options, get the user's own, and start the engine."""
        self._say(self._complaints)
        self._workspace.engine_is_chosen.clear()
        logging.getLogger("remask").setLevel(self._workspace.options.log_level.upper())
        self.later(self._start())

    def changed(self, settings: object) -> None:
        """The client says that settings have changed; `settings` holds them if it pushes them."""
        if self._client.can("workspace.configuration"):
            self.later(self._pull())
        elif isinstance(settings, dict) and settings.get("remask") is not None:
            self._take(settings["remask"])

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something without anybody waiting for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Let go of the engine."""
        for task in self._tasks:
            task.cancel()
        self._workspace.statistics.flush()
        self._workspace.snippets.close()
        self._workspace.aside.close()
        self._workspace.judging.close()
        await self._workspace.engine.close()

    async def _start(self) -> None:
        if self._client.can("workspace.configuration"):
            await self._pull()
        self._started = True
        await self._choose_engine()
        self._workspace.snippets.start()
        await self._client.watch_configuration()
        extensions = sorted({one.lstrip(".") for grammar in grammars() for one in grammar.extensions})
        await self._client.watch(f"**/*.{{{','.join(extensions)}}}", "**/.{gitignore,remaskignore}")

    async def _pull(self) -> None:
        self._take(await self._client.configuration())

    def _take(self, values: object) -> None:
        options, complaints = self._base.updated(values)
        self._say(complaints)
        old = self._workspace.options
        self._workspace.set_options(options)
        logging.getLogger("remask").setLevel(options.log_level.upper())
        if (old.exclude, old.context) != (options.exclude, options.context):
            self._workspace.snippets.folders_changed()
        if self._started and self._engine_options != _engine_values(options):
            self.later(self._choose_engine())

    async def _choose_engine(self) -> None:
        """Start the engine that the options ask for; another one is gone before, so that there are never two."""
        async with self._changing:
            workspace = self._workspace
            try:
                if self._engine_options != _engine_values(workspace.options):
                    await self._change_engine()
                workspace.engine.start()
            finally:
                workspace.engine_is_chosen.set()

    async def _change_engine(self) -> None:
        log.info("another engine is taken: its options are others")
        workspace = self._workspace
        workspace.engine_is_chosen.clear()
        workspace.engine.on_state = lambda *_: None
        await workspace.engine.close()
        options = workspace.options
        workspace.engine = self._make_engine(options)
        workspace.engine.on_state = self._on_state
        self._engine_options = _engine_values(options)

    def _say(self, complaints: list[str]) -> None:
        for complaint in complaints:
            if complaint not in self._said:
                self._said.add(complaint)
                log.warning("an option is wrong or unknown; its default is used")
                self._client.show(complaint)

    def _on_state(self, state: EngineState, detail: str) -> None:
        self._workspace.status.engine(state, detail)
        if (state in _LOADING) != (self._loading is not None):
            self.later(self._show_loading())

    async def _show_loading(self) -> None:
        """Show progress while the model is being loaded, or end it; one after the other, as a client may be slow."""
        async with self._showing:
            loads = self._workspace.status.state in _LOADING
            if self._loading is not None and not loads:
                progress, self._loading = self._loading, None
                progress.end()
            elif self._loading is None and loads and self._client.can("window.work_done_progress"):
                progress = await self._client.progress("Remask: loading the model")
                if self._workspace.status.state in _LOADING:
                    self._loading = progress
                else:
                    progress.end()


def _engine_values(options: ServerOptions) -> tuple[object, ...]:
    return tuple(getattr(options, name) for name in ENGINE_OPTIONS)
