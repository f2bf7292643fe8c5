"""Two ways to a server: in this process over pipes (fast), and as a process of its own over stdio (real)."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import psutil
import pytest
from lsp_client import PATIENCE_S, LspClient
from shared_engines import Start, is_gone, left_in

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server import engine_child
from remask.lsp_server.engine_client import ProcessEngine
from remask.lsp_server.engine_share import Place
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.server import RemaskServer

HERE = Path(__file__).parent

# --- in this process ------------------------------------------------------------------------------------------------


class InsideClient(LspClient):
    """A client of a server that runs on the same loop, with the engine in the test's hands.

    The server does nothing ahead unless its options say so. Where the line before the cursor holds "# wait", the engine
    waits for `release`; at "# raise" it fails.
    """

    def __init__(self, reader: asyncio.StreamReader, to_server: BinaryIO, answer: str) -> None:
        super().__init__(reader, lambda data: (to_server.write(data), to_server.flush()))
        self.answer = answer
        self.server: RemaskServer | None = None
        self.engine = FakeEngine(self._complete)
        self.release = asyncio.Event()
        self._asked = asyncio.Condition()

    async def _complete(self, request: CompletionRequest) -> CompletionResult:
        async with self._asked:
            self._asked.notify_all()
        line = request.prefix.rpartition("\n")[2]
        if "# wait" in line:
            await self.release.wait()
        if "# raise" in line:
            raise RuntimeError(f"at {line}")
        return CompletionResult(text=self.answer, reason=Reason.END, language=request.language)

    async def let_go(self) -> None:
        """Let the engine answer, once the server has handled all that was sent."""
        await self.error("test/unknown")
        self.release.set()

    async def asked(self, times: int) -> None:
        """Wait until the engine has been asked that often."""
        async with asyncio.timeout(PATIENCE_S), self._asked:
            await self._asked.wait_for(lambda: len(self.engine.requests) >= times)


class _LogToClient(logging.Handler):
    def __init__(self, client: LspClient) -> None:
        super().__init__(logging.INFO)
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self._loop.call_soon_threadsafe(self._add, record.getMessage() + "\n")

    def _add(self, line: str) -> None:
        task = asyncio.ensure_future(self._client.add_log(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


Inside = Callable[..., Awaitable[InsideClient]]


@pytest.fixture
async def inside(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Inside]:
    """`await inside(ANSWER)`: a client of a fresh server whose engine answers that text."""
    caplog.set_level(logging.INFO, "remask")
    started: list[tuple[InsideClient, BinaryIO, asyncio.Task[int]]] = []
    log = logging.getLogger("remask")

    async def start(answer: str) -> InsideClient:
        to_server, to_client = os.pipe(), os.pipe()
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(to_client[0], "rb")
        )
        stdin = os.fdopen(to_server[1], "wb")
        client = InsideClient(reader, stdin, answer)
        log.addHandler(handler := _LogToClient(client))
        server = RemaskServer(lambda _: client.engine, ServerOptions(speculate=False, context=False))
        client.server = server

        async def serve() -> int:
            with os.fdopen(to_server[0], "rb") as source, os.fdopen(to_client[1], "wb") as sink:
                try:
                    return await server.serve(source, sink)
                finally:
                    log.removeHandler(handler)
                    transport.close()

        started.append((client, stdin, asyncio.ensure_future(serve())))
        return client

    yield start
    for client, stdin, serving in started:
        stdin.close()
        assert await serving in (0, 1)
        await client.close()
        assert client.engine.closed


# --- a process of its own -------------------------------------------------------------------------------------------


class StdioClient(LspClient):
    """A client of a server process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        super().__init__(process.stdout, process.stdin.write)
        self.process = process
        self.tasks.append(asyncio.ensure_future(self._read_log()))

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            await self.add_log(line.decode())

    def tree(self) -> list[psutil.Process]:
        """The server's process and its children, as long as it lives."""
        server = psutil.Process(self.process.pid)
        return [server, *server.children(recursive=True)]

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def ended(self) -> int:
        """The exit code, once there is one."""
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)

    async def shut_down(self) -> int:
        await self.request("shutdown")
        self.notify("exit")
        return await self.ended()

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await super().close()
        self.process._transport.close()  # type: ignore[attr-defined]


Connect = Callable[..., Awaitable[StdioClient]]


@pytest.fixture
def runtime_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for sockets."""
    monkeypatch.setenv("REMASK_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run" / "remask"


@pytest.fixture
async def connect(runtime_dir: Path) -> AsyncIterator[Connect]:
    """`await connect(*ARGUMENTS)`: a client of fake_server.py, or of Python itself if they start with -m."""
    clients: list[StdioClient] = []

    async def start(*arguments: str) -> StdioClient:
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
        clients.append(StdioClient(process))
        return clients[-1]

    yield start
    for client in clients:
        await client.close()


@pytest.fixture
def sleeper() -> Iterator[psutil.Popen]:
    """A process that waits for its end."""
    process = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


# --- engines that several servers share -----------------------------------------------------------------------------


@pytest.fixture
async def start(runtime_dir: Path) -> AsyncIterator[Start]:
    """`start(*ARGUMENTS)`: an engine as one server sees it; the same arguments share a process."""
    engines: list[ProcessEngine] = []

    def make(*arguments: str, unload_after_s: float = 0) -> ProcessEngine:
        command = [sys.executable, str(HERE / "fake_service.py"), *arguments]
        place = Place(command)
        engines.append(ProcessEngine(command, back_off_s=0.01, unload_after_s=unload_after_s, place=place))
        return engines[-1]

    yield make
    pids = {engine.pid for engine in engines if engine.pid}
    for engine in engines:
        await engine.close()
    for pid in pids:
        await is_gone(pid)
    while engine_child._others:  # noqa: ASYNC110 - the system tells of their end
        await asyncio.sleep(0.01)
    assert not left_in(runtime_dir)
