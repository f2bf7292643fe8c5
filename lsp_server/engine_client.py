"""The only door to the engine. Knows messages, never LSP; imports nothing of the engine.

`EngineClient` is what the features see. `open_engine` decides where the engine comes from: a process that all servers
of the user with the same options share, or one of this server's own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from remask.contract.errors import EngineError, RemaskError
from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.lsp_server.engine_child import service_command
from remask.lsp_server.engine_link import EngineLink, LostError, OnDraft
from remask.lsp_server.engine_share import Place, can_share
from remask.lsp_server.engine_source import EngineSource, Run, is_cut_off
from remask.lsp_server.importing import imported
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.status import EngineState

log = logging.getLogger(__name__)

LATE_S = 3.0  # how much longer than its deadline an answer is waited for
STUCK_S = 60.0  # an engine that was asked and answered nothing for so long is stuck; a busy machine may make one slow
BACK_OFF_S = 0.5  # before an engine that died is started again; twice as long each time
MAX_BACK_OFF_S = 30.0
STARTS = 4  # without an answer in between; then it is left alone
CLOSE_WITHIN_S = 10.0  # what closing a document may take
_STUCK = "The engine did not answer and is started again."

OnState = Callable[[EngineState, str], None]


class EngineClient(Protocol):
    """Whatever completes code for the server. `on_state` is told of each change in the engine's life."""

    on_state: OnState

    def start(self) -> None:
        """Begin to get ready; returns at once. Call it on the running loop."""
        ...

    async def complete(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> CompletionResult:
        """Fill the hole. Failures are results with `Reason.ENGINE`; cancelling the wait cancels the work.

        `Reason.LOADING` says that the model is not loaded in time. `on_draft` is called with the text as far as it
        stands, if the engine tells.
        """
        ...

    async def close_document(self, document: str) -> None:
        """Let the engine put what it read of a document away. Never raises."""
        ...

    async def close(self) -> None:
        """Let go of the engine; nothing of it is left running."""
        ...


def open_engine(options: ServerOptions) -> EngineClient:
    """The engine for these options, not started yet."""
    command = service_command(options)
    place = Place(command) if options.share_engine and can_share() else None
    return ProcessEngine(command, unload_after_s=options.unload_after_s, place=place)


class _End(Enum):
    """How a run of the engine has ended."""

    IDLE = "idle"  # nobody wanted anything for long
    DIED = "died"
    LEFT = "left"  # it was another server's, and has ended


class ProcessEngine:
    """An engine in a process of its own, spoken to over its socket: our child, or that of the server at our `place`.

    Requests wait while it loads, and answer `Reason.LOADING` where that outlasts them. If it dies, or does not answer
    in time and is ended for that, it is started again, after a pause that doubles, and requests answer `Reason.ENGINE`
    meanwhile; an answer makes good for all deaths before. After `unload_after_s` idle seconds (0 is never) the process
    is let go of, and ends if nobody else wants it; the next request starts or joins one again.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        back_off_s: float = BACK_OFF_S,
        unload_after_s: float = 0,
        place: Place | None = None,
    ) -> None:
        self.on_state: OnState = lambda *_: None
        self._source = EngineSource(command, place)
        self._back_off_s = back_off_s
        self._unload_after_s = unload_after_s
        self._link: EngineLink | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # the start that requests wait for is over, well or badly
        self._wanted = asyncio.Event()
        self._working = 0
        self._deaths = 0  # since the last answer
        self._stuck = False  # the child that runs or ran last was ended by us
        self._silent_since: float | None = None  # when it was asked what it has not answered yet, a loop's time
        self._asked_at = float("-inf")  # a loop's time

    @property
    def pid(self) -> int | None:
        """The process that runs the model, if one does."""
        return self._source.run.pid if self._source.run else None

    def start(self) -> None:
        """Start the child and keep it; returns at once."""
        self._wanted.set()
        if self._keeper is None:
            self._keeper = asyncio.ensure_future(self._keep())

    async def complete(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> CompletionResult:
        """Fill the hole; see EngineClient."""
        self.start()
        self._working += 1
        clock = asyncio.get_running_loop().time
        self._asked_at = clock()
        patience_s = request.deadline_ms / 1000 + LATE_S
        asked: tuple[Run | None, float] | None = None
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    await self._settled.wait()
                    if self._link is None:
                        raise EngineError("The engine is not running.")
                    asked = self._source.run, clock()
                    if self._silent_since is None:
                        self._silent_since = asked[1]
                    try:
                        result = await self._link.complete(request, on_draft)
                        break
                    except LostError:
                        if not await self._source.has_left(asked[0]):
                            raise
                self._deaths, self._silent_since = 0, None
                return result
        except TimeoutError:
            return self._late(request, asked, clock())
        except RemaskError as error:
            if asked is not None and is_cut_off(asked[0]):
                self._end_stuck(asked[0])
            return _failure(request, str(error))
        finally:
            self._working -= 1

    def _late(self, request: CompletionRequest, asked: tuple[Run | None, float] | None, now: float) -> CompletionResult:
        """The answer where there is none in time. A run that was asked for all that time may be stuck, and ends."""
        if not self._settled.is_set():
            return _failure(request, "The model is still being loaded.", Reason.LOADING)
        waited_whole = asked is not None and now - asked[1] > request.deadline_ms / 1000 + LATE_S / 2
        if asked is not None and waited_whole and now - (self._silent_since or now) >= STUCK_S:
            self._end_stuck(asked[0])
        return _failure(request, "The engine did not answer in time.")

    def _end_stuck(self, run: Run | None) -> None:
        """End a run that can't be asked, or did not answer in time; it counts as one that died. Another's goes on."""
        if run is not None and run is self._source.run and not self._stuck:
            log.warning("the engine does not answer and is ended")
            self._stuck, self._silent_since = True, None
            if self._source.is_others:
                self._source.share_no_more()
            run.kill()

    async def close_document(self, document: str) -> None:
        """Let the engine save what it read of a document; see EngineClient."""
        if self._link is not None:
            try:
                async with asyncio.timeout(CLOSE_WITHIN_S):
                    await self._link.close_document(document)
            except (RemaskError, TimeoutError) as error:
                log.info("what was read of a document was not saved (%s)", type(error).__name__)

    async def close(self) -> None:
        """Stop the child and wait until it is gone."""
        if self._keeper is not None:
            if not self._keeper.cancelling():  # a second time would cut its cleaning up short
                self._keeper.cancel()
            await asyncio.wait((self._keeper,))
        await self._source.end()  # in case that cut its cleaning up short
        self._settled.set()

    async def _keep(self) -> None:
        """Run the child whenever it is wanted, and again when it has died."""
        try:
            while True:
                await self._wanted.wait()
                self.on_state(EngineState.STARTING, "")
                ended = await self._run_once()
                if ended is _End.LEFT:
                    log.info("the engine that another server had started has left")
                    if self._was_asked_lately():
                        continue
                    self._wanted.clear()
                if ended is not _End.DIED:
                    log.info("the engine is put away")
                    self.on_state(EngineState.UNLOADED, "")
                    continue
                self._deaths += 1
                log.warning("the engine is gone")
                if self._deaths >= STARTS:
                    self._give_up("The engine died again and again; it is not started any more.")
                    return
                self.on_state(EngineState.GONE, _STUCK if self._stuck else "")
                await asyncio.sleep(min(self._back_off_s * 2 ** (self._deaths - 1), MAX_BACK_OFF_S))
        except RemaskError as error:
            log.error("the engine cannot start: %s", error)
            self._give_up(f"Remask's engine cannot start: {error}")
        except Exception as error:
            log.error("the engine cannot be kept: %s", type(error).__name__, exc_info=True)
            self._give_up("Remask's engine cannot be kept; the log says more.")
        finally:
            self._settled.set()

    def _give_up(self, sentence: str) -> None:
        log.error("%s", sentence)
        self.on_state(EngineState.FAILED, sentence)

    async def _run_once(self) -> _End:
        """Start the engine or join it, and stay until that has ended. Raises RemaskError when it cannot start."""
        self._stuck = False
        loading = imported("aiohttp")  # a third of a second, which the child needs anyway
        ended = _End.DIED
        gone: asyncio.Task[None] | None = None
        try:
            run = await self._source.begin()
            await loading
            self._link = EngineLink(run.socket)
            self._settled.set()
            self.on_state(EngineState.READY, "")
            gone = asyncio.ensure_future(run.wait())
            if await self._watch(gone):
                ended = _End.IDLE
            elif self._source.is_others and not self._stuck:
                ended = _End.LEFT
            return ended
        finally:
            if gone is not None:
                gone.cancel()
            if ended is not _End.DIED:
                self._settled.clear()  # requests wait for the next start
            link, self._link = self._link, None
            if link is not None:
                await link.close()
            await self._source.end()

    async def _watch(self, gone: asyncio.Task[None]) -> bool:
        """Wait until the engine is gone, or (True) nobody has asked for anything for long."""
        while True:
            self._wanted.clear()
            await asyncio.wait((gone,), timeout=self._unload_after_s or None)
            if gone.done():
                self._wanted.set()
                return False
            if self._is_idle():
                return True

    def _was_asked_lately(self) -> bool:
        """Whether this server's user works on, so that the next engine should be ready soon."""
        since = asyncio.get_running_loop().time() - self._asked_at
        return bool(self._working) or since < (self._unload_after_s or float("inf"))

    def _is_idle(self) -> bool:
        """Whether nobody has asked for anything since the last look, and nobody waits for an answer."""
        return not self._wanted.is_set() and not self._working


def _failure(request: CompletionRequest, detail: str, reason: Reason = Reason.ENGINE) -> CompletionResult:
    return CompletionResult(text="", reason=reason, language=request.language, detail=detail)
