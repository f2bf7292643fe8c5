"""Server and engine as processes: whoever is killed, nobody is left behind."""

import asyncio
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsp_client import only_item

URI = "file:///project/a.py"


async def all_gone(processes: list[psutil.Process], within_s: float = 5.0) -> bool:
    """Whether all of these end within the time; a zombie whose parent is this test has ended."""
    deadline = time.monotonic() + within_s
    alive = processes
    while alive and time.monotonic() < deadline:
        _, alive = await asyncio.to_thread(psutil.wait_procs, alive, 0.05)
        alive = [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    return not alive


def sockets(folder: Path) -> list[Path]:
    return list(folder.glob("*.sock"))


def notes(folder: Path) -> list[Path]:
    return list(folder.glob("engine-*.json"))


async def started(connect: Any, document: str = "x = ", *arguments: str, ready: bool = True) -> Any:
    client = await connect("--process", *arguments)
    await client.initialize()
    client.open(URI, document)
    if ready:
        await client.until(lambda: "the engine is ready" in client.log)
    return client


async def busy(client: Any, how: str, folder: Path) -> None:
    """Let the engine work on something that does not end, and wait until it does."""
    import aiohttp

    client.change(URI, None, [{"text": how}])
    client.start_completion(URI, 0, len(how))
    (socket,) = sockets(folder)
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=str(socket))) as session:
        while True:
            async with session.get("http://engine/v1/health") as response:
                if (await response.json())["busy"]:
                    return


async def test_a_completion_comes_through_the_engines_process(connect: Any, runtime_dir: Path) -> None:
    client = await started(connect)
    assert only_item(await client.complete(URI, 0, 4))[0] == "pass"
    tree = client.tree()
    assert len(tree) == 2
    begun = time.perf_counter()
    assert await client.shut_down() == 0
    assert time.perf_counter() - begun < 1.0
    assert await all_gone(tree, 1.0)
    assert not sockets(runtime_dir), "its socket is gone"


@pytest.mark.parametrize("work", ["# block", "# deaf"])
async def test_leaving_takes_less_than_a_second_with_a_busy_engine(connect: Any, runtime_dir: Path, work: str) -> None:
    """Reports 28, 30."""
    client = await started(connect)
    await busy(client, work, runtime_dir)
    tree = client.tree()
    begun = time.perf_counter()
    assert await client.shut_down() == 0
    assert time.perf_counter() - begun < 1.0
    assert await all_gone(tree, 1.0)
    assert not sockets(runtime_dir)
    assert "Traceback" not in client.log


async def test_leaving_while_the_engine_loads(connect: Any) -> None:
    client = await started(connect, "x = ", "--slow", ready=False)
    client.start_completion(URI, 0, 4)
    while len(tree := client.tree()) < 2:
        await asyncio.to_thread(tree[0].status)
    begun = time.perf_counter()
    assert await client.shut_down() == 0
    assert time.perf_counter() - begun < 1.0
    assert await all_gone(tree, 1.0)


@pytest.mark.parametrize("work", ["", "# deaf"])
async def test_the_engine_dies_with_a_server_that_is_killed(connect: Any, runtime_dir: Path, work: str) -> None:
    """Report 29."""
    client = await started(connect)
    if work:
        await busy(client, work, runtime_dir)
    tree = client.tree()
    client.process.kill()
    assert await all_gone(tree)
    assert not sockets(runtime_dir)


async def test_both_die_with_an_editor_that_is_killed(connect: Any) -> None:
    """Reports 28, 29."""
    editor = await asyncio.create_subprocess_exec("sleep", "600")
    client = await connect("--process")
    await client.initialize(process_id=editor.pid)
    await client.until(lambda: "the engine is ready" in client.log)
    tree = client.tree()
    editor.kill()
    await editor.wait()
    assert await all_gone(tree), "although our end of the pipe is open still"


async def test_both_die_when_the_editors_pipe_closes(connect: Any, runtime_dir: Path) -> None:
    """Report 28."""
    client = await started(connect)
    await busy(client, "# deaf", runtime_dir)
    tree = client.tree()
    client.end_input()
    assert await all_gone(tree, 2.0)


@pytest.mark.parametrize("end", ["kill", "exit", "end_input"])
async def test_the_engine_goes_on_for_another_server_however_the_one_ends_that_has_started_it(
    connect: Any, runtime_dir: Path, end: str
) -> None:
    """Report 28."""
    first, second = await connect("--shared"), await connect("--shared")
    for client in (first, second):
        await client.initialize()
        client.open(URI, "x = ")
        await client.until(lambda client=client: "is ready" in client.log)
        assert only_item(await client.complete(URI, 0, 4))[0] == "pass"
    server, engine = first.tree()
    assert len(second.tree()) == 1, "one engine for both"
    begun = time.perf_counter()
    if end == "kill":
        first.process.kill()
    elif end == "end_input":
        first.end_input()
    else:
        first.notify("exit")
    await first.ended()
    assert time.perf_counter() - begun < 1.0
    assert engine.is_running()
    assert only_item(await second.complete(URI, 0, 4, triggerKind=1))[0] == "pass"
    assert len(second.tree()) == 1, "it has started none of its own"
    assert await second.shut_down() == 0
    assert await all_gone([server, engine])
    assert not sockets(runtime_dir)
    assert not notes(runtime_dir)


async def test_an_editor_that_waits_for_the_end_of_the_log_does_not_wait_for_a_shared_engine(connect: Any) -> None:
    """The engine writes its log to the server that has started it, and to nobody when that is gone."""
    first, second = await connect("--shared"), await connect("--shared")
    for client in (first, second):
        await client.initialize()
        await client.until(lambda client=client: "is ready" in client.log)
    await first.shut_down()
    await asyncio.wait_for(first.tasks[-1], 5)
    assert second.tree()
