"""What pygls does by itself and we do otherwise. Knows JSON-RPC and pygls's inside, no feature.

pygls keeps its own copy of each document, which splits lines as Python does and costs milliseconds a keystroke; it
answers nothing to a request that it cannot read, and nothing after `shutdown`.
"""

from __future__ import annotations

import inspect
import json
import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

from remask.lsp_server.notifications import METHODS

if TYPE_CHECKING:
    from remask.lsp_server.server import RemaskServer

log = logging.getLogger(__name__)


_NEVER_REQUESTS = frozenset({types.INITIALIZED, types.CANCEL_REQUEST, types.SET_TRACE, types.PROGRESS})


class RemaskProtocol(LanguageServerProtocol):
    """pygls's protocol with text synchronisation, life cycle and error answers of our own."""

    _server: RemaskServer
    initialized = False

    def receive(self, body: bytes) -> None:
        """Handle one message. Whatever is wrong with it, the server lives and a request gets an answer."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            log.error("a message of %d bytes is not JSON", len(body))
            self._answer_nobody(JsonRpcParseError("The message is not JSON."))
            return
        if not isinstance(data, dict) or data.get("jsonrpc") != self.VERSION or not _is_message(data):
            log.error("a message is not a JSON-RPC 2.0 object")
            self._answer_nobody(JsonRpcInvalidRequest("The message is not a JSON-RPC 2.0 object."))
            return
        if not self._is_allowed(data):
            return
        method = data.get("method")
        ours = method in METHODS or (method in _NEVER_REQUESTS and "id" in data)
        try:
            message: Any = None if ours else self.structure_message(data)
        except Exception as error:
            self._refuse(data, error)
            return
        try:
            if ours:
                self._notified(str(method), data)
            else:
                self.handle_message(message)
        except Exception as error:  # the last line of defence: one message must not end the server
            log.error("a message could not be handled (%s)", type(error).__name__)
            self._answer_error(data, JsonRpcInternalError("The message could not be handled."))

    def _notified(self, method: str, data: dict[str, Any]) -> None:
        """Handle a notification of ours; sent as a request it is an error."""
        if "id" in data:
            self._answer_error(data, JsonRpcInvalidRequest(f"'{method}' is a notification."))
        elif self._server.notifications is not None:
            self._server.notifications.handle(method, data.get("params"))

    def _is_allowed(self, data: dict[str, Any]) -> bool:
        """Whether the message fits the life cycle; a request that does not is answered here."""
        method = data.get("method")
        if method is None or method == types.EXIT:
            return True
        refusal: JsonRpcException | None = None
        if self._shutdown:
            refusal = JsonRpcInvalidRequest("The server is shutting down.")
        elif method == types.INITIALIZE and self.initialized:
            refusal = JsonRpcInvalidRequest("The server is initialized already.")
        elif method != types.INITIALIZE and not self.initialized:
            refusal = JsonRpcServerNotInitialized("The first request must be 'initialize'.")
        if refusal is not None:
            self._answer_error(data, refusal)
        return refusal is None

    def _refuse(self, data: dict[str, Any], error: Exception) -> None:
        if "method" not in data:
            self._drop_response(data)
            return
        method = str(data["method"])[:80]
        log.error("a message cannot be read: %s (%s)", method, type(error).__name__)
        self._answer_error(data, JsonRpcInvalidParams(f"The parameters of '{method}' cannot be read."))

    def _drop_response(self, data: dict[str, Any]) -> None:
        """An answer of the client that cannot be read is an error to whoever waits for it."""
        log.error("an answer of the client cannot be read")
        future = self._request_futures.pop(data["id"], None)
        if future is not None and not future.done():
            future.set_exception(JsonRpcInvalidParams("The answer cannot be read."))

    def _answer_error(self, data: dict[str, Any], error: JsonRpcException) -> None:
        if "id" in data and "method" in data:
            self._send_response(data["id"], error=error.to_response_error())

    def _answer_nobody(self, error: JsonRpcException) -> None:
        """Answer a message whose id cannot be told, as JSON-RPC wants it."""
        response = error.to_response_error()
        self._send_data(
            {"jsonrpc": self.VERSION, "id": None, "error": {"code": response.code, "message": response.message}}
        )

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Any:
        """Initialize, once."""
        self.initialized = True
        return (yield from super().lsp_initialize(params))

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        """Run a command. In pygls's own way a cancelled command runs on, and `shutdown` fails while one runs."""
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams("There is no such command.")
        result = handler(*(params.arguments or ()))
        return await result if inspect.isawaitable(result) else result

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]  # a plain function will do
        """Leave; 1 tells that no `shutdown` came before."""
        self._server.leave(0 if self._shutdown else 1)

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        """Cancel a request; one that has been answered meanwhile is the usual case and not worth a word."""
        future = self._request_futures.pop(msg_id, None) if isinstance(msg_id, int | str) else None
        if future is not None:
            future.cancel()


def _is_message(data: dict[str, Any]) -> bool:
    """Whether this is a request, a notification or a response; a method is a string, an id that or a number."""
    method, number = data.get("method"), data.get("id")
    if "id" in data and (not isinstance(number, int | str) or isinstance(number, bool)):
        return False
    return isinstance(method, str) if "method" in data else "id" in data and ("result" in data or "error" in data)
