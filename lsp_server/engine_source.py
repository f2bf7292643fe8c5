"""Where runs of the engine come from: a child of ours, or the process that another server has started.

Knows processes and the place where servers meet, no requests and no states.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

from remask.contract.errors import StorageError
from remask.lsp_server.engine_child import READY_WITHIN_S, EngineChild
from remask.lsp_server.engine_share import LOOK_AGAIN_S, JoinedEngine, Place

log = logging.getLogger(__name__)

Run = EngineChild | JoinedEngine
LEAVES_WITHIN_S = 1.0  # from its socket's end to its own
QUIET_LOOKS = 50  # for another's engine, one after the other, while nothing shows that one is on its way; about 5 s
_REFUSED = 3  # times that another's engine may let nobody join it, each of which may take JOINS_WITHIN_S


class EngineSource:
    """Begins one run after the other; `run` is the one that there is. Without a place all are our own."""

    def __init__(self, command: Sequence[str], place: Place | None = None) -> None:
        self.command = command
        self.run: Run | None = None
        self._place = place
        self._over = asyncio.Event()  # the run has been let go of

    @property
    def is_others(self) -> bool:
        """Whether the run is another server's."""
        return isinstance(self.run, JoinedEngine)

    async def begin(self) -> Run:
        """A run that is ready. Raises RemaskError when none can be started."""
        joined = await self._joined()
        self._over = asyncio.Event()
        if joined is not None:
            self.run = joined
            return joined
        self.run = child = EngineChild(self.command)
        note = self._place.note if self._place is not None else None
        await child.start(lambda: self._publish(child, loading=True), note)
        self._publish(child, loading=False)
        return child

    async def end(self) -> None:
        """Let go of the run: it ends if nobody else wants it. Fine if there is none, and after it was cut short."""
        stays = False
        if self.run is not None:
            stays = await self.run.stop()
            self.run = None
        self._over.set()
        if self._place is not None:
            self._place.leave(stays=stays)

    async def has_left(self, run: Run | None) -> bool:
        """Whether a run that does not answer was another server's and ends; returns when the next may be waited for."""
        if not isinstance(run, JoinedEngine):
            return False
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(run.wait(), LEAVES_WITHIN_S)
        if run.runs:
            return False
        if self.run is run:
            over = self._over
            run.look()
            await over.wait()
        return True

    def share_no_more(self) -> None:
        """Begin only runs of our own from now on."""
        if self._place is not None:
            self._place.leave()
        self._place = None

    async def _joined(self) -> JoinedEngine | None:
        """The run of another server, once it is ready; None where we have to start one.

        Who holds the lock may be stopped or hang, so what it does has to be seen.
        """
        quiet = refused = 0
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while self._place is not None and not self._place.take():
                    joined = self._place.find()
                    if joined is not None:
                        if await joined.join():
                            log.info("the engine of another server is ready")
                            return joined
                        refused += 1
                    quiet = 0 if self._place.is_loading() else quiet + 1
                    if quiet > QUIET_LOOKS or refused > _REFUSED:
                        raise TimeoutError
                    await asyncio.sleep(LOOK_AGAIN_S)
        except (OSError, StorageError, TimeoutError) as error:
            self._share_with_nobody(error)
        return None

    def _publish(self, child: EngineChild, *, loading: bool) -> None:
        """Let the other servers know of our run, if it may be theirs too."""
        if self._place is not None and child.pid is not None:
            try:
                self._place.publish(child.socket, child.pid, loading=loading)
            except OSError as error:
                self._share_with_nobody(error)

    def _share_with_nobody(self, error: Exception) -> None:
        log.warning("no engine can be shared (%s)", type(error).__name__)
        self.share_no_more()


def is_cut_off(run: Run | None) -> bool:
    """Whether a run's socket was removed, as by the end of a session, which empties its folder: nobody can ask it."""
    return run is not None and not Path(run.socket).exists()
