"""A raw JSON-RPC client for a real server process, and ways to start one. It waits on conditions and never sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

HERE = Path(__file__).parent
PATIENCE_S = 20.0


class LspClient:
    """One client of one server process over stdio."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.notifications: list[dict[str, Any]] = []
        self.log = ""
        self._changed = asyncio.Condition()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._read_log())]

    async def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                header = await self.process.stdout.readuntil(b"\r\n\r\n")
                length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await self._take(json.loads(await self.process.stdout.readexactly(length)))
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
        async with self._changed:
            self.notifications.append(message)
            self._changed.notify_all()

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            async with self._changed:
                self.log += line.decode()
                self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that the server wrote makes the condition true."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(condition)

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

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
        self, encodings: list[str] | None = None, options: Any = None, process_id: int | None = None
    ) -> dict[str, Any]:
        general = {} if encodings is None else {"positionEncodings": encodings}
        result = await self.request(
            "initialize",
            {
                "processId": process_id,
                "rootUri": None,
                "capabilities": {"general": general, "textDocument": {"inlineCompletion": {}}},
                "initializationOptions": options,
            },
        )
        self.notify("initialized")
        return dict(result["capabilities"])

    def open(self, uri: str, text: str, language: str = "python", version: int = 1) -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def type(self, uri: str, version: int, line: int, column: int, text: str) -> None:
        at = {"line": line, "character": column}
        self.change(uri, version, [{"range": {"start": at, "end": at}, "text": text}])

    def change(self, uri: str, version: int | None, changes: list[Any]) -> None:
        self.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        )

    def start_completion(self, uri: str, line: int, column: int) -> tuple[int, asyncio.Future[Any]]:
        return self.start_request("textDocument/inlineCompletion", _completion(uri, line, column))

    async def complete(self, uri: str, line: int, column: int) -> Any:
        return await self.request("textDocument/inlineCompletion", _completion(uri, line, column))

    def tree(self) -> list[psutil.Process]:
        """The server's process and its children, as long as it lives."""
        server = psutil.Process(self.process.pid)
        return [server, *server.children(recursive=True)]

    async def shut_down(self) -> int:
        await self.request("shutdown")
        self.notify("exit")
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.process._transport.close()  # type: ignore[attr-defined]


def _completion(uri: str, line: int, column: int) -> dict[str, Any]:
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": column},
        "context": {"triggerKind": 2},
    }


Connect = Callable[..., Awaitable[LspClient]]


@pytest.fixture
def runtime_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for sockets."""
    folder = tmp_path / "run"
    monkeypatch.setenv("REMASK_RUNTIME_DIR", str(folder))
    return folder / "remask"


@pytest.fixture
async def connect(runtime_dir: Path) -> AsyncIterator[Connect]:
    """Start servers; each argument list goes to fake_server.py, or to Python if it starts with -m."""
    clients: list[LspClient] = []

    async def start(*arguments: str) -> LspClient:
        script = [] if arguments[:1] == ("-m",) else [str(HERE / "fake_server.py")]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *script,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
        client = LspClient(process)
        clients.append(client)
        return client

    yield start
    for client in clients:
        await client.close()


async def all_gone(processes: list[psutil.Process], within_s: float) -> bool:
    """Whether all of these processes have ended after at most `within_s` seconds."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, within_s)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
