"""The real server with a scripted engine. Started by the tests as a process of its own.

`fake_server.py TEXT`: a FakeEngine that answers TEXT; where the text before the cursor ends in a line with "# wait", it
waits for `test/release`. `fake_server.py --process`: a real engine process around fake_service.py.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.engine_client import EngineClient, ProcessEngine
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.server import RemaskServer, main

SERVICE = Path(__file__).with_name("fake_service.py")


class Script:
    """What the fake engine answers, and when."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.release = asyncio.Event()
        self.changed = asyncio.Event()
        self.engine = FakeEngine(self.answer)

    async def answer(self, request: CompletionRequest) -> CompletionResult:
        self.changed.set()
        if "# wait" in request.prefix.rpartition("\n")[2]:
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.changed.set()
                raise
        if "# raise" in request.prefix:
            raise RuntimeError("secret words of the source")
        return CompletionResult(text=self.text, reason=Reason.END, language=request.language)

    async def counters(self, params: Any) -> dict[str, Any]:
        """Answer once the engine has been asked and cancelled at least so often."""
        while len(self.engine.requests) < params.requests or self.engine.cancelled < params.cancelled:
            self.changed.clear()
            await self.changed.wait()
            await asyncio.sleep(0)
        return {"requests": len(self.engine.requests), "cancelled": self.engine.cancelled}


def make_server() -> RemaskServer:
    if sys.argv[1] == "--process":
        return RemaskServer(lambda _: ProcessEngine([sys.executable, str(SERVICE), *sys.argv[2:]]))
    script = Script(sys.argv[1])

    def make_engine(_: ServerOptions) -> EngineClient:
        return script.engine

    server = RemaskServer(make_engine)

    @server.feature("test/counters")
    async def counters(params: Any) -> dict[str, Any]:
        return await script.counters(params)

    @server.feature("test/release")
    def release(_: Any) -> None:
        script.release.set()

    return server


if __name__ == "__main__":
    main(make_server)
