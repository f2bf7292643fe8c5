"""Where runs of the engine come from: a child of ours, or the process that another server has started.

Knows processes and the place where servers meet, no requests and no states.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from remask.contract.errors import EngineError
from remask.lsp_server.engine_child import READY_WITHIN_S, EngineChild
from remask.lsp_server.engine_link import EngineLink
from remask.lsp_server.engine_share import LOOK_AGAIN_S, JoinedEngine, Place

log = logging.getLogger(__name__)

Run = EngineChild | JoinedEngine
LEAVES_WITHIN_S = 1.0  # from its socket's end to its own


class EngineSource:
    """Begins one run after the other; `run` is the one that there is. Without a place all are our own."""

    def __init__(self, command: Sequence[str], place: Place | None = None) -> None:
        self.command = command
        self.run: Run | None = None
        self._place = place
        self._completed = -1  # requests of all servers, at the last look

    @property
    def is_others(self) -> bool:
        """Whether the run is another server's."""
        return isinstance(self.run, JoinedEngine)

    async def begin(self) -> Run:
        """A run that is ready. Raises RemaskError when none can be started."""
        if (joined := await self._joined()) is not None:
            self.run = joined
            return joined
        self.run = child = EngineChild(self.command)
        await child.start()
        if self._place is not None and child.pid is not None:
            with contextlib.suppress(OSError):  # then nobody joins it
                self._place.publish(child.socket, child.pid)
        return child

    async def end(self) -> None:
        """End the run if it is ours, else turn away from it; fine if there is none, and after it was cut short."""
        if self.run is not None:
            await self.run.stop()
            self.run = None
        if self._place is not None:
            self._place.leave()

    async def has_left(self, run: Run | None) -> bool:
        """Whether a run that does not answer was another server's and ends; returns when the next may be waited for."""
        if not isinstance(run, JoinedEngine):
            return False
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(run.wait(), LEAVES_WITHIN_S)
        if run.runs:
            return False
        while self.run is run:
            run.look()
            await asyncio.sleep(0)
        return True

    def share_no_more(self) -> None:
        """Begin only runs of our own from now on."""
        if self._place is not None:
            self._place.leave()
        self._place = None

    async def others_ask(self, link: EngineLink) -> bool:
        """Whether anybody has asked our run for anything since the last look; nobody does if it is not shared."""
        if self._place is None or self.is_others:
            return False
        before = self._completed
        try:
            self._completed = await link.completed()
        except EngineError:
            return False
        return self._completed != before

    async def _joined(self) -> JoinedEngine | None:
        """The run of another server, once it is ready; None where we have to start one."""
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while self._place is not None and not self._place.take():
                    joined = self._place.find()
                    if joined is not None:
                        log.info("the engine of another server is ready")
                        return joined
                    await asyncio.sleep(LOOK_AGAIN_S)
        except (OSError, TimeoutError) as error:
            log.warning("no engine can be shared (%s)", type(error).__name__)
            self.share_no_more()
        return None
