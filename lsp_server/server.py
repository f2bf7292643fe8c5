"""The server: a pygls server around our documents and features. Knows LSP, never a model.

Life: `serve` runs until the client says `exit`, closes our input, or is gone; it ends the engine and returns an exit
code. `main` turns that code into the end of the process at once, whatever still runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from remask.lsp_server import logs, watchdog
from remask.lsp_server.client import Client
from remask.lsp_server.engine_client import EngineClient, open_engine
from remask.lsp_server.features.fill_actions import COMMAND as FILL_COMMAND
from remask.lsp_server.features.fill_actions import KIND as FILL_KIND
from remask.lsp_server.features.fill_actions import FillActions
from remask.lsp_server.features.ghost import ACCEPTED
from remask.lsp_server.features.inline_completion import InlineCompletion
from remask.lsp_server.notifications import Notifications
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.positions import Unit
from remask.lsp_server.protocol import RemaskProtocol
from remask.lsp_server.settings import Settings
from remask.lsp_server.status import Status
from remask.lsp_server.transport import MessageReader, MessageWriter
from remask.lsp_server.version import own_version
from remask.lsp_server.workspace import Workspace

log = logging.getLogger(__name__)

LEAVE_WITHIN_S = 0.85  # from the client's end to ours
THREADS_WITHIN_S = 0.15  # after that

MakeEngine = Callable[[ServerOptions], EngineClient]


class RemaskServer(LanguageServer):
    """The language server. `make_engine` gets the client's options, laid over `defaults`, once they are known."""

    protocol: RemaskProtocol

    def __init__(self, make_engine: MakeEngine = open_engine, defaults: ServerOptions | None = None) -> None:
        super().__init__(
            name="remask",
            version=own_version(),
            protocol_cls=RemaskProtocol,
            converter_factory=default_converter,
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                [types.NotebookDocumentFilterWithNotebook(notebook="*")]
            ),
        )
        self.state: Workspace | None = None
        self.notifications: Notifications | None = None
        self._make_engine = make_engine
        self._defaults = defaults or ServerOptions()
        self._settings: Settings | None = None
        self._inline: InlineCompletion | None = None
        self.fill: FillActions | None = None
        self._reader: MessageReader | None = None
        self._exit_code = 1
        _register(self)

    async def serve(self, stdin: BinaryIO, stdout: BinaryIO) -> int:
        """Serve one client over two streams; returns the exit code when it has gone."""
        self._reader = reader = MessageReader(stdin)
        self.protocol.set_writer(MessageWriter(stdout, lambda: self.leave(1)))
        try:
            while (body := await reader.next()) is not None:
                self.protocol.receive(body)
                # A request begins now, before the next message changes the document that it speaks of.
                await asyncio.sleep(0)
        finally:
            if self._settings is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._settings.close(), LEAVE_WITHIN_S)
        return self._exit_code

    def leave(self, code: int) -> None:
        """Let `serve` return with this exit code. Call it on the loop."""
        self._exit_code = code
        if self._reader is not None:
            self._reader.end()

    def on_initialize(self, params: types.InitializeParams) -> None:
        """Read the options, agree on the unit of positions and open the engine's door."""
        client = Client(self.protocol.notify, self.protocol.send_request_async, params)
        status = Status(self.protocol.notify, lambda sentence: client.show(sentence, types.MessageType.Error))
        options, complaints = self._defaults.updated(params.initialization_options)
        unit = Unit(self.workspace.position_encoding or Unit.UTF16)
        self.state = Workspace(self._make_engine(options), options, status, unit)
        for folder in params.workspace_folders or []:
            self.state.folders.add(folder.uri)
        if not params.workspace_folders and params.root_uri:
            self.state.folders.add(params.root_uri)
        self._settings = Settings(self.state, client, self._make_engine, options, complaints)
        self.notifications = Notifications(self.state, client, self._settings)
        self.fill = FillActions(self.state, client)
        self._inline = InlineCompletion(self.state, keeps_on_null=client.name == "Neovim")
        watchdog.watch(params.process_id, _end_now)

    def on_initialized(self) -> None:
        """Start the engine, so that the first completion finds it ready, and say what is wrong with the options."""
        if self._settings is not None:
            self._settings.start()

    async def inline_completion(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """Ghost text at a position, or None."""
        return await self._inline.complete(params) if self._inline is not None else None

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log that something failed; a window that pops up while someone types helps nobody."""
        log.error("%s: %s", getattr(source, "__name__", "error"), type(error).__name__)


def _register(server: RemaskServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.on_initialize(params)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        server.on_initialized()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=True))
    def did_save(_: types.DidSaveTextDocumentParams) -> None:
        """Only so that the client is asked for it; see text_sync."""

    @server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
    async def inline_completion(params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        return await server.inline_completion(params)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[FILL_KIND], resolve_provider=True)
    )
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        return await server.fill.offer(params) if server.fill is not None else []

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await server.fill.resolve(action) if server.fill is not None else action

    @server.command(FILL_COMMAND)
    async def fill(*arguments: Any) -> dict[str, Any]:
        return await server.fill.run(arguments) if server.fill is not None else {}

    @server.command(ACCEPTED)
    def accepted(*arguments: Any) -> None:
        if server.notifications is not None:
            server.notifications.accepted(arguments)


def _end_now() -> None:
    """The editor is gone: so are we, and the engine with us, since its input closes."""
    os._exit(1)


def run_stdio(make_server: Callable[[], RemaskServer] = RemaskServer) -> int:
    """Serve the client on standard input and output until it has gone; returns the exit code."""
    listener = logs.set_up()
    code = 1
    try:
        # Closing the stream of a client that is gone fails, and that is no news.
        with contextlib.suppress(OSError), _claim_stdout() as stdout:
            code = asyncio.run(_serve(make_server, sys.stdin.buffer, stdout))
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        log.critical("the server failed: %s", type(error).__name__, exc_info=True)
    finally:
        stopper = threading.Thread(target=listener.stop, daemon=True)
        stopper.start()
        stopper.join(0.2)
    return code


async def _serve(make_server: Callable[[], RemaskServer], stdin: BinaryIO, stdout: BinaryIO) -> int:
    code = await make_server().serve(stdin, stdout)
    # asyncio waits for its threads, and one may be at a file that a disk far away never gives.
    timer = threading.Timer(THREADS_WITHIN_S, os._exit, (code,))
    timer.daemon = True
    timer.start()
    return code


def _claim_stdout() -> BinaryIO:
    """The stream for messages alone: whatever else prints goes to standard error."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def main(make_server: Callable[[], RemaskServer] = RemaskServer) -> None:
    """Serve on standard input and output, then end the process at once."""
    code = run_stdio(make_server)
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)
