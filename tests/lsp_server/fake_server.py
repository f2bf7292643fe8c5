"""The real server with an engine without a model. Started by the tests as a process of its own.

`fake_server.py TEXT`: a FakeEngine that answers TEXT, or never where the line before the cursor holds "# wait", or
where a function is named `wait`; its draft is the first word of TEXT.
`fake_server.py --process ...`: a real engine process around fake_service.py with the arguments that follow; with
`--shared ...` it is one that all such servers share.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.engine_client import ProcessEngine
from remask.lsp_server.engine_share import Place
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.server import RemaskServer, main

DEFAULTS = ServerOptions(speculate=False)
SERVICE = Path(__file__).with_name("fake_service.py")


async def answer(request: CompletionRequest) -> CompletionResult:
    line = request.prefix.rpartition("\n")[2]
    if "# wait" in line or "def wait" in request.prefix:
        await asyncio.Event().wait()
    if "# nothing" in line:
        return CompletionResult(text="", reason=Reason.EMPTY, language=request.language)
    if "# raise" in line:
        raise RuntimeError(f"at {line}")
    return CompletionResult(text=sys.argv[1], reason=Reason.END, language=request.language)


def make_server() -> RemaskServer:
    if sys.argv[1] in ("--process", "--shared"):
        command = [sys.executable, str(SERVICE), *sys.argv[2:]]
        place = Place(command) if sys.argv[1] == "--shared" else None
        return RemaskServer(lambda _: ProcessEngine(command, place=place), DEFAULTS)
    return RemaskServer(lambda _: FakeEngine(answer, (sys.argv[1].partition(" ")[0],)), DEFAULTS)


if __name__ == "__main__":
    main(make_server)
