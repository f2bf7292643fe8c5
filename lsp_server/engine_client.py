"""The only door to the engine. Knows messages and HTTP, never LSP; imports nothing of the engine.

`EngineClient` is what the features see. `open_engine` decides where the engine comes from: today each server starts
one of its own; joining one that runs already belongs there too.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from remask.contract.errors import EngineError, RemaskError
from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.engine_child import EngineChild, service_command
from remask.lsp_server.options import ServerOptions

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

LATE_S = 3.0  # how much longer than its deadline an answer may take before the engine counts as stuck
BACK_OFF_S = 0.5  # before an engine that died is started again
_STARTS = 2  # the first one, and one more unless it answers


class EngineClient(Protocol):
    """Whatever completes code for the server."""

    def start(self) -> None:
        """Begin to get ready; returns at once. Call it on the running loop."""
        ...

    async def complete(self, request: CompletionRequest) -> CompletionResult:
        """Fill the hole. Failures are results with `Reason.ENGINE`; cancelling the wait cancels the work."""
        ...

    async def close(self) -> None:
        """Let go of the engine; nothing of it is left running."""
        ...


def open_engine(options: ServerOptions) -> EngineClient:
    """The engine for these options, not started yet."""
    return ProcessEngine(service_command(options))


class ProcessEngine:
    """An engine in a child process of ours, spoken to over its socket.

    Requests wait while it loads for the first time. If it dies it is started once more after a back-off, and requests
    answer `Reason.ENGINE` meanwhile; an answer in between earns it the next restart.
    """

    def __init__(self, command: Sequence[str], *, back_off_s: float = BACK_OFF_S) -> None:
        self._command = command
        self._back_off_s = back_off_s
        self._child: EngineChild | None = None
        self._session: aiohttp.ClientSession | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # the first start is over, well or badly
        self._starts_left = _STARTS

    @property
    def pid(self) -> int | None:
        """The process that runs the model, if one does."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start the child and keep it; returns at once."""
        if self._keeper is None:
            self._keeper = asyncio.ensure_future(self._keep())

    async def complete(self, request: CompletionRequest) -> CompletionResult:
        """Fill the hole; see EngineClient."""
        self.start()
        try:
            async with asyncio.timeout(request.deadline_ms / 1000 + LATE_S):
                await self._settled.wait()
                return await self._ask(request)
        except TimeoutError:
            return _failure(request, "The engine did not answer in time.")
        except RemaskError as error:
            return _failure(request, str(error))

    async def close(self) -> None:
        """Stop the child and wait until it is gone."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait((self._keeper,))
        self._settled.set()

    async def _ask(self, request: CompletionRequest) -> CompletionResult:
        session = self._session
        if session is None:
            raise EngineError("The engine is not running.")
        import aiohttp

        try:
            body = io.BytesIO(request.to_json().encode())  # aiohttp sends a stream piece by piece
            async with session.post("http://engine/v1/complete", data=body) as response:
                values = await response.json()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise EngineError(f"The engine does not answer ({type(error).__name__}).") from error
        result = _read(values)
        self._starts_left = _STARTS - 1
        return result

    async def _keep(self) -> None:
        """Run the child, and once more when it has died."""
        try:
            while self._starts_left > 0:
                self._starts_left -= 1
                await self._run_once()
                log.warning("the engine is gone")
                await asyncio.sleep(self._back_off_s)
            log.error("the engine died again without an answer; it is not started any more")
        except RemaskError as error:
            log.error("the engine cannot start: %s", error)
        except Exception as error:
            log.error("the engine cannot be kept: %s", type(error).__name__, exc_info=True)
        finally:
            self._settled.set()

    async def _run_once(self) -> None:
        """Start the child and stay until it dies. Raises RemaskError when it says that it cannot start."""
        self._child = child = EngineChild(self._command)
        # It takes a third of a second: time that the child needs anyway, and the loop must stay free.
        loading = asyncio.ensure_future(asyncio.to_thread(importlib.import_module, "aiohttp"))
        try:
            await child.start()
            await loading
            self._session = _open_session(child.socket)
            self._settled.set()
            await child.wait()
        finally:
            session, self._session, self._child = self._session, None, None
            if session is not None:
                await session.close()
            await child.stop()


def _open_session(socket: str) -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(path=socket), timeout=aiohttp.ClientTimeout(total=None), trust_env=False
    )


def _read(values: object) -> CompletionResult:
    if isinstance(values, dict) and isinstance(error := values.get("error"), dict):
        raise EngineError(str(error.get("message", "The engine failed.")), advice=str(error.get("advice", "")))
    try:
        return CompletionResult.from_dict(values)  # type: ignore[arg-type]
    except (RemaskError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise EngineError("The engine answered nonsense.") from error


def _failure(request: CompletionRequest, detail: str) -> CompletionResult:
    return CompletionResult(text="", reason=Reason.ENGINE, language=request.language, detail=detail)
