"""A text that takes long to look at holds up nobody else."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from remask.grammars import Grammar, GrammarError, bounded, grammar_for_language
from remask.grammars.bounded import parse_bounded
from remask.lsp_server import parsed, recheck
from remask.lsp_server.aside import Aside

URI = "file:///project/a.py"
STUB = "def area(w, h):\n    pass\n"


class SlowParse:
    """Parses when it is let go; `begun` tells that one is asked for."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, grammar: Grammar, source: bytes) -> Any:
        self.begun.set()
        assert self.go.wait(60)
        return parse_bounded(grammar, source)

    async def is_at_it(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 60)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowParse]:
    slow = SlowParse()
    monkeypatch.setattr(parsed, "parse_bounded", slow)
    monkeypatch.setattr(recheck, "parse_bounded", slow)
    yield slow
    slow.go.set()


async def test_typing_is_answered_while_a_text_is_looked_at_for_actions(inside: Any, slow: SlowParse) -> None:
    client = await inside("value")
    await client.initialize()
    client.open(URI, STUB + "# looked at for the first time\n")
    client.open("file:///project/b.py", "x = ")
    place = {"line": 1, "character": 4}
    params = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    actions = asyncio.ensure_future(client.request("textDocument/codeAction", {"textDocument": {"uri": URI}, **params}))
    await slow.is_at_it()
    assert await client.complete("file:///project/b.py", 0, 4)
    assert not actions.done()
    slow.go.set()
    assert [one["title"] for one in await actions] == ["Fill function body"]


async def test_typing_is_answered_while_a_trimmed_text_is_judged_again(inside: Any, slow: SlowParse) -> None:
    client = await inside("b)")
    await client.initialize()
    client.open(URI, "x = f(a, )\n")
    client.open("file:///project/b.py", "x = ")
    first = asyncio.ensure_future(client.complete(URI, 0, 9))
    await slow.is_at_it()
    client.answer = "value"
    assert await client.complete("file:///project/b.py", 0, 4)
    assert await first is None, "a newer request took its place"
    slow.go.set()


async def test_ghost_text_is_judged_while_a_text_is_looked_at_for_actions(
    inside: Any, slow: SlowParse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks at a large broken text may stand in line for seconds, one for each move of the cursor."""
    monkeypatch.setattr(recheck, "parse_bounded", parse_bounded)
    client = await inside("b)")
    await client.initialize()
    client.open(URI, STUB + "# never looked at before\n")
    client.open("file:///project/b.py", "x = f(a, )\n")
    place = {"line": 1, "character": 4}
    params = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    looked = asyncio.ensure_future(client.request("textDocument/codeAction", {"textDocument": {"uri": URI}, **params}))
    await slow.is_at_it()
    assert await client.complete("file:///project/b.py", 0, 9)
    slow.go.set()
    assert await looked


async def test_a_text_that_has_changed_is_not_looked_at_any_more(inside: Any, slow: SlowParse) -> None:
    """Else an editor that cancels nothing waits for a look at each text that there was meanwhile."""
    client = await inside("value")
    await client.initialize()
    client.open(URI, STUB + "# the first of many\n")
    place = {"line": 1, "character": 4}
    params = {"textDocument": {"uri": URI}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    asked = [client.start_request("textDocument/codeAction", params)[1]]
    await slow.is_at_it()
    for version in range(2, 9):
        client.type(URI, version, 2, 0, "#")
        asked.append(client.start_request("textDocument/codeAction", params)[1])
    await client.error("test/unknown")  # all that was sent has been read
    slow.go.set()
    *old, last = [answer["result"] for answer in await asyncio.gather(*asked)]
    assert [len(actions) for actions in old] == [1, *[0] * (len(old) - 1)]
    assert [one["title"] for one in last] == ["Fill function body"]


def test_a_parse_lets_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its looks at the clock it would hold the interpreter until its end."""
    grammar = grammar_for_language("python")
    assert grammar is not None
    monkeypatch.setattr(bounded, "PARSE_WITHIN_S", 60.0)
    source = ("x = (\n" * 4_000).encode()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=parse_bounded, args=(grammar, source))
        thread.start()
        turns = 0
        while thread.is_alive():
            turns += 1
            thread.join(1e-6)
    finally:
        sys.setswitchinterval(interval)
    assert turns > 20


async def test_what_goes_wrong_aside_is_told_and_what_is_not_wanted_any_more_never_begins() -> None:
    aside, go, done = Aside(), threading.Event(), list[int]()

    def fail() -> None:
        raise GrammarError("There is no parser.")

    with pytest.raises(GrammarError):
        await aside.run(fail)
    first = asyncio.ensure_future(aside.run(go.wait, 60))
    second = asyncio.ensure_future(aside.run(done.append, 2))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait((second,))
    go.set()
    assert await first
    await aside.run(done.append, 3)
    assert done == [3]
    aside.close()
