"""What shared engines are asked in tests, by servers that the tests play."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.engine_client import ProcessEngine

Start = Callable[..., ProcessEngine]


def left_in(folder: Path) -> list[Path]:
    """What servers and engines have left behind in the folder where they meet."""
    return [*folder.glob("*.sock"), *folder.glob("engine-*")]


async def is_gone(pid: int | None) -> None:
    """Wait until no such process is left, nor its note."""
    assert pid
    async with asyncio.timeout(20):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def health(engine: ProcessEngine) -> dict[str, Any]:
    assert engine._link is not None
    async with engine._link._session.get("http://engine/v1/health") as response:
        return dict(await response.json())


async def complete(engine: ProcessEngine, prefix: str = "x = ", **fields: Any) -> CompletionResult:
    return await engine.complete(CompletionRequest(document="d", language="python", prefix=prefix, **fields))


async def answers(engine: ProcessEngine) -> None:
    """Wait until the engine answers (again)."""
    async with asyncio.timeout(20):
        while (await complete(engine)).reason is Reason.ENGINE:  # noqa: ASYNC110 - another process decides
            await asyncio.sleep(0.01)


async def is_not_answered(engine: ProcessEngine) -> None:
    """Ask what the engine never answers; on a busy machine the time may be up before it hears of it."""
    while (await complete(engine, "# deaf", deadline_ms=50)).reason is Reason.DEADLINE:
        pass


async def two(start: Start) -> tuple[ProcessEngine, ProcessEngine]:
    """The engine of the server that has started it, and the same of another server."""
    owner, guest = start(), start()
    await answers(owner)
    await answers(guest)
    return owner, guest
