"""The server as a process: its streams, its log, its end."""

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import pytest
from lsp_client import completion, only_item

URI = "file:///project/a.py"


async def started(connect: Any, text: str, document: str, process_id: int | None = None) -> Any:
    client = await connect(text)
    await client.initialize(process_id=process_id)
    client.open(URI, document)
    return client


async def test_the_log_holds_no_source(connect: Any) -> None:
    client = await started(connect, "marker_answer", "marker_source = ")
    await client.complete(URI, 0, 16)
    client.change(URI, 2, [{"text": "marker_source", "range": {"start": "marker_source"}}])
    client.send(method="textDocument/didSave", params={"text": "marker_source", "textDocument": 5})
    await client.error("textDocument/inlineCompletion", {"marker_source": "marker_source"})
    client.open("file:///b.py", "# raise marker_source")
    await client.error("textDocument/inlineCompletion", completion("file:///b.py", 0, 7))
    await client.shut_down()
    await client.until(lambda: "cannot be read" in client.log)
    assert "marker" not in client.log


async def test_leaving_with_a_request_that_waits(connect: Any) -> None:
    """Report 30."""
    client = await started(connect, "1", "x = # wait")
    client.start_completion(URI, 0, 10)
    begun = time.perf_counter()
    assert await client.shut_down() == 0
    assert time.perf_counter() - begun < 1.0
    assert "Traceback" not in client.log


@pytest.mark.parametrize("how", ["exit", "end of input"])
async def test_leaving_without_a_shutdown_is_exit_code_1(connect: Any, how: str) -> None:
    client = await started(connect, "1", "x = ")
    await client.complete(URI, 0, 4)
    if how == "exit":
        client.notify("exit")
    else:
        client.end_input()
    assert await client.ended() == 1
    assert "Traceback" not in client.log


async def test_a_client_that_reads_nothing_any_more(connect: Any) -> None:
    client = await started(connect, "1", "x = ")
    await client.complete(URI, 0, 4)
    for task in client.tasks:
        task.cancel()
    client.process._transport.get_pipe_transport(1).close()
    while client.process.returncode is None:  # the first answer may still find the pipe open
        client.start_completion(URI, 0, 4)
        await asyncio.sleep(0.01)
    assert await client.ended() == 1


async def test_it_ends_with_the_process_that_it_was_told_of(connect: Any) -> None:
    editor = await asyncio.create_subprocess_exec("sleep", "600")
    client = await started(connect, "1", "x = ", process_id=editor.pid)
    await client.complete(URI, 0, 4)
    editor.kill()
    await editor.wait()
    assert await client.ended() == 1


async def test_a_process_id_that_cannot_be_seen_is_not_waited_for(connect: Any) -> None:
    client = await started(connect, "1", "x = ", process_id=2**22 + 1)
    assert only_item(await client.complete(URI, 0, 4))[0] == "1"
    assert await client.shut_down() == 0


STUCK = """
import asyncio, threading
from remask.lsp_server import server
class Stuck:
    async def serve(self, stdin, stdout):
        asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
        return 7
server.main(Stuck)
"""


def test_leaving_while_a_thread_waits_for_a_file() -> None:
    assert subprocess.run([sys.executable, "-c", STUCK], stdin=subprocess.DEVNULL, timeout=60).returncode == 7


def test_the_server_needs_no_torch_and_no_http_to_start() -> None:
    code = (
        "import json, sys, remask.lsp_server.server, remask.lsp_server.context, remask.cli.lsp;"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules} | "
        "{name for name in sys.modules if name.startswith('remask.')})))"
    )
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert not {"torch", "numpy", "aiohttp", "tokenizers"} & set(loaded)
    assert not [name for name in loaded if name.startswith("remask.engine")]
