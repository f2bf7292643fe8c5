"""A raw JSON-RPC client for tests. It waits on conditions and never sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

PATIENCE_S = 20.0


class LspClient:
    """Speaks over two byte streams with a server, wherever that runs."""

    def __init__(self, reader: asyncio.StreamReader, write: Callable[[bytes], Any]) -> None:
        self.write = write
        self.notifications: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}  # to the server's requests: values, or functions of the parameters
        self.log = ""
        self._reader = reader
        self._changed = asyncio.Condition()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self.tasks = [asyncio.ensure_future(self._read())]

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                header = await self._reader.readuntil(b"\r\n\r\n")
                length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await self._take(json.loads(await self._reader.readexactly(length)))
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ConnectionError("the server is gone"))
                future.exception()

    async def _take(self, message: dict[str, Any]) -> None:
        if "id" in message and "method" not in message:
            future = self._pending.pop(message["id"], None)
            if future is not None and not future.done():
                future.set_result(message)
            return
        if "id" in message:
            answer = self.answers.get(message["method"])
            self.send(id=message["id"], result=answer(message["params"]) if callable(answer) else answer)
        async with self._changed:
            self.notifications.append(message)
            self._changed.notify_all()

    def sent(self, method: str) -> list[Any]:
        """The parameters of all notifications and requests of this kind that the server has sent."""
        return [message["params"] for message in self.notifications if message["method"] == method]

    @property
    def windows(self) -> list[str]:
        """What the server has shown to the user."""
        return [params["message"] for params in self.sent("window/showMessage")]

    async def add_log(self, line: str) -> None:
        async with self._changed:
            self.log += line
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that the server wrote makes the condition true."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(condition)

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any = None) -> None:
        self.send(method=method, params={} if params is None else params)

    def start_request(self, method: str, params: Any = None) -> tuple[int, asyncio.Future[Any]]:
        self._next_id += 1
        future = self._pending[self._next_id] = asyncio.get_running_loop().create_future()
        self.send(id=self._next_id, method=method, params=params)
        return self._next_id, future

    async def request(self, method: str, params: Any = None) -> Any:
        """The result of a request; an error answer fails the test."""
        answer = await asyncio.wait_for(self.start_request(method, params)[1], PATIENCE_S)
        assert "error" not in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None) -> int:
        """The code of the error that a request is answered with."""
        answer = await asyncio.wait_for(self.start_request(method, params)[1], PATIENCE_S)
        return int(answer["error"]["code"])

    async def initialize(
        self,
        encodings: list[str] | None = None,
        options: Any = None,
        process_id: int | None = None,
        name: str = "a test",
        capabilities: dict[str, Any] | None = None,
        folders: list[str] | None = None,
    ) -> dict[str, Any]:
        """Shake hands; returns the server's capabilities."""
        general = {} if encodings is None else {"positionEncodings": encodings}
        result = await self.request(
            "initialize",
            {
                "processId": process_id,
                "clientInfo": {"name": name},
                "rootUri": None,
                "workspaceFolders": [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in folders or []],
                "capabilities": {"general": general, "textDocument": {"inlineCompletion": {}}, **(capabilities or {})},
                "initializationOptions": options,
            },
        )
        self.notify("initialized")
        return dict(result["capabilities"])

    def open(self, uri: str, text: str, language: str = "python", version: int = 1) -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def close_document(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def type(self, uri: str, version: int, line: int, column: int, text: str) -> None:
        self.change(uri, version, [{"range": at(line, column), "text": text}])

    def change(self, uri: str, version: int | None, changes: list[Any]) -> None:
        self.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        )

    def start_completion(self, uri: str, line: int, column: int, **context: Any) -> tuple[int, asyncio.Future[Any]]:
        return self.start_request("textDocument/inlineCompletion", completion(uri, line, column, **context))

    async def complete(self, uri: str, line: int, column: int, **context: Any) -> Any:
        return await self.request("textDocument/inlineCompletion", completion(uri, line, column, **context))

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def at(line: int, column: int) -> dict[str, Any]:
    """The empty range at a place."""
    place = {"line": line, "character": column}
    return {"start": place, "end": place}


def completion(uri: str, line: int, column: int, **context: Any) -> dict[str, Any]:
    """The parameters of a request for ghost text, an automatic one unless the context says otherwise."""
    place = at(line, column)["start"]
    return {"textDocument": {"uri": uri}, "position": place, "context": {"triggerKind": 2, **context}}


def only_item(answer: Any) -> tuple[str, dict[str, Any]]:
    """The text and the range of an answer's one item."""
    (item,) = answer["items"]
    return item["insertText"], item["range"]
