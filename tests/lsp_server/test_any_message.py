"""Ten thousand messages that nobody should send: the server answers by the rules of JSON-RPC and LSP, and lives."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

from lsp_client import at, only_item

from remask.lsp_server.fake_engine import FakeEngine

MESSAGES = 10_000
AT_ONCE = 250
URIS = ["file:///project/a.py", "untitled:b", "file:///C%3A/c.py", "", "file:///project/.env", "\ud800", "x" * 300]
URIS += [
    "untitled://[x",
    "file://[bad/a.py",
    "http://[::1/a.py",
    f"file:///project/{'a' * 300}.py",
    "file:///w/\ud800.py",
]
REQUESTS = [
    *("textDocument/inlineCompletion", "textDocument/codeAction", "codeAction/resolve", "workspace/executeCommand"),
    *("textDocument/hover", "custom/unknown", "", "$/unknown", "initialize"),
]
NOTIFICATIONS = [
    *("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/didSave"),
    *("notebookDocument/didOpen", "notebookDocument/didChange", "notebookDocument/didClose"),
    *("workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles", "workspace/didChangeWorkspaceFolders"),
    *("textDocument/didShowCompletion", "textDocument/didPartiallyAcceptCompletion", "textDocument/didFocus"),
    *("$/cancelRequest", "$/setTrace", "window/workDoneProgress/cancel", "initialized", "custom/unknown"),
]
ERRORS = {-32700, -32600, -32601, -32602, -32603, -32800, -32801, -32001}


class Noise:
    """Makes messages; knows how many answers each must have."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.number = 0

    def value(self, depth: int = 0) -> Any:
        """Any JSON value."""
        kinds = ["null", "flag", "number", "text", "place", "uri", "list", "object"]
        kind = self.chance.choice(kinds[:6] if depth > 3 else kinds)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(self.chance.randrange(3))]
        if kind == "object":
            return {self.name(): self.value(depth + 1) for _ in range(self.chance.randrange(4))}
        simple = {
            "null": None,
            "flag": self.chance.random() < 0.5,
            "number": self.chance.choice((0, 1, -1, 5, 2**31, 2**70, 1.5, 1e308)),
            "text": self.chance.choice(("", "x", "def f():\n    pass\n", "\r", "😀", "\ud83d", "remask.fill", "1.0")),
            "place": {"line": self.chance.choice((0, 1, 9, -1)), "character": self.chance.choice((0, 3, 99))},
            "uri": self.chance.choice(URIS),
        }
        return simple[kind]

    def name(self) -> str:
        names = ("textDocument", "uri", "text", "position", "range", "context", "version", "contentChanges", "settings")
        return self.chance.choice(
            (*names, "languageId", "cells", "event", "item", "id", "token", "command", "arguments")
        )

    def params(self) -> Any:
        """Mostly like real ones, with a part that is not."""
        values: dict[str, Any] = {
            "textDocument": {
                "uri": self.chance.choice(URIS),
                "version": self.chance.choice((1, None, -5)),
                "languageId": self.chance.choice(("python", "go", "klingon", 5)),
                "text": self.chance.choice(("x = ", "def f():\n    pass\n", "a\r\nb", None)),
            },
            "position": {"line": self.chance.randrange(3), "character": self.chance.randrange(9)},
            "range": at(self.chance.randrange(3), self.chance.randrange(9)),
            "context": {"triggerKind": self.chance.choice((1, 2, 3, "x")), "diagnostics": []},
            "contentChanges": [{"text": self.chance.choice(("y", "\n")), "range": at(0, self.chance.randrange(4))}],
            "command": self.chance.choice(("remask.fill", "remask.accepted", "x")),
            "id": self.chance.randrange(self.number + 1),
        }
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            values[self.chance.choice(list(values))] = self.value()
        return values if self.chance.random() < 0.9 else self.value()

    def message(self) -> tuple[bytes, Any]:
        """A message's body, and the id that must be answered: None for nobody, ... for an id that cannot be told."""
        kind = self.chance.random()
        if kind < 0.05:
            broken = (b"{", b"[]", b"5", b"null", b"\xff\xfe", b'{"jsonrpc": "2.0"}', b"[" * 5_000, b"", b'"x"')
            return self.chance.choice(broken), ...
        data: dict[str, Any] = {"jsonrpc": "2.0"}
        if kind < 0.1:
            data |= {
                "id": self.chance.choice((-3, "no such", 2**40)),
                self.chance.choice(("result", "error")): self.value(),
            }
            return json.dumps(data).encode(), None
        if kind < 0.15:
            data |= {"id": self.chance.choice((None, True, 1.5, [], {})), "method": self.chance.choice(REQUESTS)}
            return json.dumps(data).encode(), ...
        if kind < 0.17:
            data |= {"method": self.chance.choice((5, None, [], {}))}
            return json.dumps(data).encode(), ...
        wants_answer = self.chance.random() < 0.5
        data["method"] = self.chance.choice(REQUESTS if wants_answer else NOTIFICATIONS)
        if self.chance.random() < 0.95:
            data["params"] = self.params()
        if self.chance.random() < 0.05:
            data["method"] = self.chance.choice(NOTIFICATIONS)  # as a request
        if wants_answer:
            self.number += 1
            data["id"] = self.chance.choice((self.number, f"text {self.number}"))
        return json.dumps(data).encode(), data.get("id")


async def test_every_message_is_answered_by_the_rules_and_the_server_lives(inside: Any) -> None:
    client = await inside("")
    client.engine = FakeEngine("1")
    await client.initialize(options={"debounce": "off", "statistics": False})
    noise = Noise(1)
    answered: Counter[Any] = Counter()
    nobody = 0

    async def take(message: dict[str, Any]) -> None:
        nonlocal nobody
        if "method" in message:
            return
        assert ("result" in message) != ("error" in message)
        assert message.get("error", {"code": -32700})["code"] in ERRORS
        nobody += message["id"] is None
        answered[message["id"]] += 1
        if message["id"] == "last":
            done.set()

    done = asyncio.Event()
    original, client._take = client._take, take
    expected: Counter[Any] = Counter()
    broken = 0
    for number in range(MESSAGES):
        body, wants = noise.message()
        client.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        expected[wants] += wants is not None and wants is not ...
        broken += wants is ...
        if number % AT_ONCE == AT_ONCE - 1:
            client.send(id="last", method="custom/last")
            await asyncio.wait_for(done.wait(), 20)
            done.clear()
    for _ in range(200):  # requests that wait for the engine end after the last message
        client.send(id="last", method="custom/last")
        await asyncio.wait_for(done.wait(), 20)
        done.clear()
        if sum(answered.values()) - answered["last"] - nobody >= sum(expected.values()):
            break
    client._take = original
    del answered["last"], answered[None]
    assert +expected == answered, "each request has one answer, and nothing else has any"
    assert nobody == broken
    client.open("file:///after.py", "x = ")
    assert only_item(await client.complete("file:///after.py", 0, 4))[0] == "1"
    assert "Error in server" not in str(client.windows)
    assert await client.request("shutdown") is None
