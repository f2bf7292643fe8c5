"""Measures a server process from the outside, as an editor meets it, with an engine that answers at once.

Knows the protocol and the clock; times are in milliseconds, memory in megabytes.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import Any

import psutil

from remask.lsp_server.document import Change, Document, Position

COMMAND = [sys.executable, "-P", "-m", "remask.lsp_server.fake_engine", "value"]
SIZES = {"1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000}
LINE = "value = compute(first, second)  # 你好\n"
_EDITS = 200


class _Editor:
    """The least that an editor does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout
        self._number = 0

    @property
    def megabytes(self) -> float:
        """Memory of the server's process."""
        return float(psutil.Process(self._process.pid).memory_info().rss) / 1e6

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    async def request(self, method: str, params: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = await self._read()
            if message.get("id") == self._number and "method" not in message:
                return message.get("result")

    async def end(self) -> None:
        await self.request("shutdown", None)
        self.notify("exit", None)
        await self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _read(self) -> dict[str, Any]:
        header = await self._output.readuntil(b"\r\n\r\n")
        length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        message: dict[str, Any] = json.loads(await self._output.readexactly(length))
        return message


async def measure(requests: int, documents: int) -> dict[str, Any]:
    """Start a server, measure, end it."""
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    editor = _Editor(process)
    options = {"speculate": False, "debounce": "off", "statistics": False, "context": False}
    capabilities = {"general": {"positionEncodings": ["utf-16"]}}
    await editor.request(
        "initialize",
        {"processId": None, "rootUri": None, "capabilities": capabilities, "initializationOptions": options},
    )
    start_ms = (time.perf_counter() - started) * 1000
    editor.notify("initialized", {})
    report = {
        "start_ms": round(start_ms, 1),
        "inline_completion_ms": await _completions(editor, requests),
        "did_change_ms": {name: await _edits(editor, size) for name, size in SIZES.items()},
        "document_apply_ms": {name: _applied(size) for name, size in SIZES.items()},
        "memory_mb": await _memory(editor, documents),
    }
    started = time.perf_counter()
    await editor.end()
    return {**report, "exit_ms": round((time.perf_counter() - started) * 1000, 1)}


async def _completions(editor: _Editor, times: int) -> dict[str, float]:
    """A keystroke and a request for ghost text, from the first byte sent to the answer."""
    uri = "file:///bench/completions.py"
    _open(editor, uri, LINE * 300)
    spent = []
    for number in range(times):
        place = {"line": number % 300, "character": 3}
        begun = time.perf_counter()
        _type(editor, uri, number + 2, place)
        after = {"line": place["line"], "character": 4}
        params = {"textDocument": {"uri": uri}, "position": after, "context": {"triggerKind": 2}}
        answer = await editor.request("textDocument/inlineCompletion", params)
        spent.append((time.perf_counter() - begun) * 1000)
        assert answer is not None
    return _percentiles(spent)


async def _edits(editor: _Editor, size: int) -> dict[str, float]:
    """Edits all over a document; each is followed by a request that costs nothing, whose own time is taken off."""
    uri = f"file:///bench/{size}.py"
    lines = max(1, size // len(LINE.encode()))
    _open(editor, uri, LINE * lines)
    await editor.request("remask/nothing", None)
    spent, nothing = [], []
    for number in range(_EDITS):
        begun = time.perf_counter()
        await editor.request("remask/nothing", None)
        between = time.perf_counter()
        _type(editor, uri, number + 2, {"line": (number * 7919) % lines, "character": 5})
        await editor.request("remask/nothing", None)
        nothing.append((between - begun) * 1000)
        spent.append((time.perf_counter() - between) * 1000)
    base = statistics.median(nothing)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return _percentiles([max(0.0, one - base) for one in spent])


def _applied(size: int) -> dict[str, float]:
    """The document class alone."""
    lines = max(1, size // len(LINE.encode()))
    document = Document("file:///a.py", "python", 1, LINE * lines)
    spent = []
    for number in range(_EDITS):
        place = Position((number * 7919) % lines, 5)
        begun = time.perf_counter()
        document.apply([Change("x", place, place)], number)
        spent.append((time.perf_counter() - begun) * 1000)
    return _percentiles(spent)


async def _memory(editor: _Editor, documents: int) -> dict[str, float]:
    """Before and after so many documents were opened, changed and closed."""

    async def some(count: int) -> None:
        for number in range(count):
            uri = f"file:///bench/memory{number}.py"
            _open(editor, uri, LINE * 250)
            _type(editor, uri, 2, {"line": 1, "character": 1})
            editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            if number % 50 == 49:
                await editor.request("remask/nothing", None)

    await some(100)  # what grows once
    before = editor.megabytes
    await some(documents)
    await editor.request("remask/nothing", None)
    return {"before": round(before, 1), "after": round(editor.megabytes, 1)}


def _open(editor: _Editor, uri: str, text: str) -> None:
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    editor.notify("textDocument/didOpen", {"textDocument": item})


def _type(editor: _Editor, uri: str, version: int, place: dict[str, int]) -> None:
    change = {"range": {"start": place, "end": place}, "text": "x"}
    editor.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}
    )


def _percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50": round(ordered[len(ordered) // 2], 3), "p99": round(ordered[int(len(ordered) * 0.99)], 3)}
