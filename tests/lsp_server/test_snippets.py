"""Other files: the index, the choice, the deadline, and what is never chosen."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from remask.contract.messages import CompletionRequest
from remask.grammars import grammar_for_language
from remask.lsp_server import snippets
from remask.lsp_server.choose import Here, Other, choose, jaccard
from remask.lsp_server.index import MAX_BYTES, Index

PYTHON = grammar_for_language("python")


def test_jaccard() -> None:
    assert jaccard(frozenset("ab"), frozenset("bc")) == 1 / 3
    assert jaccard(frozenset(), frozenset()) == 0.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "shapes.py": "def area(w, h):\n    return w * h\n",
        "use.py": "from shapes import area\n\nprint(area(1, 2))\n",
        "deep/near.py": "def area(r):\n    return r\n",
        "secret/.env.py": "def area(s):\n    return s\n",
        "ignored.py": "def hidden_area(s):\n    return s\n",
        ".gitignore": "ignored.py\n",
        "large.py": "def big_one():\n    pass\n" + "#" * MAX_BYTES,
        "binary.py": "def odd_one():\n    pass\n\0",
        "node_modules/x.js": "function never() {}\n",
        "notes.txt": "def text(): pass\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def indexed(folder: Path, *hidden: str) -> Index:
    index = Index(lambda path, _: path.name in hidden)
    index.start()
    index.read([folder])
    assert index.settled.wait(20)
    return index


def test_the_index_of_a_folder(folder: Path) -> None:
    index = indexed(folder, "ignored.py", ".env.py")
    assert [path.name for path, _ in index.find("area", folder / "deep/x.py")] == ["near.py", "shapes.py"]
    assert [path.name for path in index.callers("area", folder / "shapes.py")] == ["use.py"]
    assert len(index) == 3
    for name in ("hidden_area", "big_one", "odd_one", "never", "text"):
        assert not index.find(name, None)
    (folder / "shapes.py").write_text("def volume(): pass\n")
    (folder / "deep/near.py").unlink()
    index.read([folder / "shapes.py", folder / "deep/near.py"])
    assert index.settled.wait(20)
    assert not index.find("area", None)
    assert index.find("volume", None)
    index.close()


def test_the_choice_is_bounded_and_in_order(folder: Path) -> None:
    index = indexed(folder)
    here = Here(folder / "use.py", "from shapes import area\n" + "total = total + 1\nwhole = 5\n" * 3, 2, PYTHON)
    others = [Other("one.py", "total = total + 1\nwhole = 5\nlast = 1\n", 0)]
    far = time.monotonic() + 60
    chosen = choose(here, others, ["+ x = 1"], index, 5_000, far, f"{folder.as_posix()}/")
    assert [one.kind for one in chosen] == ["definition", "recent", "edits"]
    assert chosen[0].path == "shapes.py", "the module that is imported"
    assert chosen[-1].kind == "edits"
    assert choose(here, others, [], index, 0, far) == ()
    assert choose(here, others, [], index, 5_000, time.monotonic() - 1) == ()
    assert sum(len(one.text) for one in choose(here, others, ["+ " + "x" * 400], index, 100, far)) <= 100
    index.close()


async def with_context(inside: Any, folder: Path, **options: Any) -> Any:
    client = await inside("1")
    await client.initialize(folders=[folder.as_uri()], options={"context": True, **options})
    await client.request("textDocument/codeAction", whole_range("file:///x"))  # all has been handled
    index = client.server.state.snippets.index
    assert await asyncio.to_thread(index.settled.wait, 20)
    return client


def whole_range(uri: str) -> dict[str, Any]:
    place = {"line": 0, "character": 0}
    return {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}


async def request_of(client: Any, uri: str, line: int) -> CompletionRequest:
    """What the engine is asked once the context of the document has been chosen."""
    while tasks := list(client.server.state.snippets._tasks.values()):
        await asyncio.wait(tasks)
    await client.complete(uri, line, 0, triggerKind=1)
    request: CompletionRequest = client.engine.requests[-1]
    return request


async def test_definitions_and_open_files_go_with_a_request(inside: Any, folder: Path) -> None:
    client = await with_context(inside, folder)
    client.open("untitled:Other", "counter = counter + 1\n")
    uri = (folder / "use.py").as_uri()
    client.open(uri, "from shapes import area\n")
    await client.complete(uri, 1, 0)
    request = await request_of(client, uri, 1)
    assert [one.kind for one in request.context] == ["definition", "recent"]
    assert request.context[0].text.startswith("def area(")
    assert not any("hidden_area" in one.text for one in request.context)


async def test_secrets_and_ignored_files_never_go_along(inside: Any, folder: Path) -> None:
    """Report 36."""
    client = await with_context(inside, folder)
    client.open(f"file://{folder}/c#/.env", "TOKEN = 'abc'\n")
    client.type(f"file://{folder}/c#/.env", 2, 0, 0, "# ")
    for name, text in [(".env", "TOKEN = 'abc'\n"), ("ignored.py", "PASSWORD = 'abc'\n"), ("fine.py", "fine = 1\n")]:
        uri = (folder / name).as_uri()
        client.open(uri, text)
        client.type(uri, 2, 0, 0, "# ")
    uri = (folder / "use.py").as_uri()
    client.open(uri, "from ignored import hidden_area\n")
    await client.complete(uri, 1, 0)
    request = await request_of(client, uri, 1)
    text = str(request.context)
    assert "fine = 1" in text
    assert "TOKEN" not in text
    assert "PASSWORD" not in text
    assert "hidden_area" not in text


async def test_the_option_turns_it_off(inside: Any, folder: Path) -> None:
    client = await with_context(inside, folder)
    uri = (folder / "use.py").as_uri()
    client.open("untitled:Other", "counter = 1\n")
    client.open(uri, "from shapes import area\n")
    await client.complete(uri, 1, 0)
    client.notify("workspace/didChangeConfiguration", {"settings": {"remask": {"context": False}}})
    assert (await request_of(client, uri, 1)).context == ()


async def test_typing_keeps_the_context_as_it_is(inside: Any, folder: Path) -> None:
    client = await with_context(inside, folder)
    client.open("untitled:Other", "counter = 1\n")
    uri = (folder / "use.py").as_uri()
    client.open(uri, "from shapes import area\n")
    await client.complete(uri, 1, 0)
    first = await request_of(client, uri, 1)
    for version in range(2, 6):
        client.type(uri, version, 1, 0, "x")
    assert (await request_of(client, uri, 1)).context == first.context != ()


async def test_saving_keeps_the_context_while_it_shows_the_same_files(
    inside: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await with_context(inside, folder)
    client.open("untitled:Other", "counter = 1\n")
    uri = (folder / "use.py").as_uri()
    client.open(uri, "from shapes import area\n")
    await client.complete(uri, 1, 0)
    first = (await request_of(client, uri, 1)).context
    client.type("untitled:Other", 2, 0, 0, "new_")
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert (await request_of(client, uri, 1)).context == first
    monkeypatch.setattr(snippets, "KEEP_S", -1.0)
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.error("test/unknown")
    assert "new_counter" in str((await request_of(client, uri, 1)).context)


async def test_a_completion_never_waits_for_the_context(
    inside: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report 31."""
    started = asyncio.Event()

    async def for_ever(*_: Any) -> tuple[()]:
        started.set()
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(snippets.asyncio, "to_thread", for_ever)
    client = await inside("1")
    await client.initialize(options={"context": True})
    client.open("file:///a.py", "x = ")
    assert (await client.complete("file:///a.py", 0, 4))["items"]
    assert started.is_set()


async def test_callers_go_with_a_function_that_is_filled(inside: Any, folder: Path) -> None:
    client = await with_context(inside, folder)
    uri = (folder / "shapes.py").as_uri()
    client.open(uri, "def area(w, h):\n    pass\n")
    argument = {"uri": uri, "position": {"line": 1, "character": 4}, "apply": False}
    await client.request("workspace/executeCommand", {"command": "remask.fill", "arguments": [argument]})
    assert "print(area(1, 2))" in client.engine.requests[-1].context[0].text
    assert client.engine.requests[-1].context[0].path == "use.py"


async def test_what_a_signature_names_goes_with_a_function_that_is_filled(inside: Any, folder: Path) -> None:
    (folder / "types.py").write_text("class Shape:\n    sides: int\n\n\nclass Colour:\n    pass\n")
    client = await with_context(inside, folder)
    uri = (folder / "deep" / "paint.py").as_uri()
    client.open(uri, "def paint(shape: Shape, w: list[Shape]) -> None:\n    pass\n")
    argument = {"uri": uri, "position": {"line": 1, "character": 4}, "apply": False}
    await client.request("workspace/executeCommand", {"command": "remask.fill", "arguments": [argument]})
    context = client.engine.requests[-1].context
    assert [one.text for one in context if one.path == "types.py"] == ["class Shape:\n    sides: int"]


async def test_files_that_change_on_disk_are_read_again(inside: Any, folder: Path) -> None:
    client = await with_context(inside, folder)
    index = client.server.state.snippets.index
    (folder / "new.py").write_text("def brand_new(): pass\n")
    changes = [{"uri": (folder / "new.py").as_uri(), "type": 1}, {"uri": "file:///elsewhere/x.py", "type": 1}]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    await client.error("test/unknown")
    assert await asyncio.to_thread(index.settled.wait, 20)
    assert index.find("brand_new", None)
    (folder / ".remaskignore").write_text("new.py\n")
    client.notify(
        "workspace/didChangeWatchedFiles", {"changes": [{"uri": (folder / ".remaskignore").as_uri(), "type": 1}]}
    )
    await client.error("test/unknown")
    assert await asyncio.to_thread(index.settled.wait, 20)
    assert not index.find("brand_new", None)


async def set_options(client: Any, **options: Any) -> None:
    client.notify("workspace/didChangeConfiguration", {"settings": {"remask": options}})
    await client.error("test/unknown")


async def test_a_changed_exclusion_holds_from_the_next_request_on(inside: Any, folder: Path) -> None:
    client = await with_context(inside, folder)
    uri = (folder / "use.py").as_uri()
    (folder / "deep/near.py").unlink()
    client.open((folder / "deep/near.py").as_uri(), "near = area(1)\n")
    client.type((folder / "deep/near.py").as_uri(), 2, 0, 0, "very_")
    client.open(uri, "from shapes import area\n")
    await client.complete(uri, 1, 0)
    assert "shapes.py" in str((await request_of(client, uri, 1)).context)
    await set_options(client, context=True, exclude=["shapes.py", "deep/"])
    await client.complete(uri, 1, 0, triggerKind=1)
    for request in (client.engine.requests[-1], await request_of(client, uri, 1)):
        assert "shapes" not in str(request.context)
        assert "very_near" not in str(request.context)
    index = client.server.state.snippets.index
    assert await asyncio.to_thread(index.settled.wait, 20)
    assert not [path for path, _ in index.find("area", None) if path.name == "shapes.py"]
    await set_options(client, context=True)
    assert await asyncio.to_thread(index.settled.wait, 20)
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.error("test/unknown")
    assert "shapes.py" in str((await request_of(client, uri, 1)).context), "and it may be taken back"


async def test_what_the_index_still_holds_is_judged_when_it_is_chosen(folder: Path) -> None:
    hidden: set[str] = set()
    index = Index(lambda path, _: path.name in hidden)
    index.start()
    index.read([folder])
    assert await asyncio.to_thread(index.settled.wait, 20)
    here = Here(folder / "use.py", "from shapes import area\n", 0, PYTHON)
    far = time.monotonic() + 60
    assert choose(here, [], [], index, 5_000, far)
    hidden |= {"shapes.py", "near.py", ".env.py"}
    assert choose(here, [], [], index, 5_000, far) == ()
    index.close()


async def test_a_folder_that_is_removed_leaves_the_context_at_once(inside: Any, folder: Path) -> None:
    client = await with_context(inside, folder)
    uri = (folder / "use.py").as_uri()
    client.open(uri, "from shapes import area\n")
    await client.complete(uri, 1, 0)
    assert "shapes.py" in str((await request_of(client, uri, 1)).context)
    event = {"added": [], "removed": [{"uri": folder.as_uri(), "name": "x"}]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    await client.complete(uri, 1, 0, triggerKind=1)
    for request in (client.engine.requests[-1], await request_of(client, uri, 1)):
        assert "def area" not in str(request.context)
    index = client.server.state.snippets.index
    assert await asyncio.to_thread(index.settled.wait, 20)
    assert len(index) == 0
