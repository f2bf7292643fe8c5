"""The engine with a clock at its judges, and the draft before the gate beside what is shown.

Overrides what `Engine.complete` calls and changes nothing of it. Knows the engine; measures, never scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.engine.api import Engine
from remask.engine.decode.events import Denoised, Remasked
from remask.engine.decode.guard import Ends, Syntax
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import Policy
from remask.engine.decode.remask import Finding, Judge, Remasker
from remask.engine.decode.request import Request
from remask.engine.decode.search.found import Found
from remask.engine.decode.stop import StopRules
from remask.engine.decode.trace import Trace
from remask.engine.judge.finish import finish
from remask.engine.judge.gate import Gate
from remask.engine.judge.names import NamesJudge
from remask.engine.judges import Judges
from remask.engine.models.model import Model

Clock = Callable[[], float]
T = TypeVar("T")
Clocked = Callable[[Callable[[], T]], T]


@dataclass(frozen=True, slots=True)
class Watched:
    """One completion. `draft` is what would be shown without a gate; `ended`: why decoding did.

    passes, canvases: denoising passes and the canvases that they went over; removed: tokens taken back. Milliseconds:
    decode_ms is decoding without its judges, judge_ms what judges of unfinished canvases took (the corrector head's
    passes count as decoding); gate_ms is everything between the last token and the result, which is the gate and the
    judge of names.
    """

    result: CompletionResult
    draft: str
    ended: Reason
    passes: int
    canvases: int
    removed: int
    decode_ms: float
    judge_ms: float
    gate_ms: float


@dataclass(slots=True)
class _Decoded:
    """What the decoder did, and the clock's time when it was done."""

    text: str
    reason: Reason
    trace: Trace
    seconds: float
    at: float


class WatchedEngine(Engine):
    """Another engine with the model and the corrector of `engine`, which tells what its judges cost."""

    def __init__(self, engine: Engine, clock: Clock = time.perf_counter) -> None:
        super().__init__(engine.model)
        self.judges = self._clocked = _ClockedJudges(engine, clock)
        self._clock = clock
        self._decoder = self._watching = _WatchedDecoder(engine.model, clock)

    def watch(self, request: CompletionRequest) -> Watched:
        """`complete`, watched. Raises InputError for an unknown policy."""
        self._clocked.setup = self._clocked.judging = 0.0
        result = self.complete(request)
        ended = self._clock()
        done = self._watching.done
        assert done is not None, "the language has a grammar"
        denoised = [event for event in done.trace.events if isinstance(event, Denoised)]
        removed = [event for event in done.trace.events if isinstance(event, Remasked)]
        return Watched(
            result=result,
            draft=finish(done.text, done.reason, request.prefix, request.suffix, None).text,
            ended=done.reason,
            passes=len(denoised),
            canvases=len({event.at for event in denoised}),
            removed=sum(len(event.positions) for event in removed),
            decode_ms=(done.seconds - self._clocked.judging) * 1000,
            judge_ms=(self._clocked.setup + self._clocked.judging) * 1000,
            gate_ms=(ended - done.at) * 1000,
        )


class _ClockedJudges(Judges):
    """The judges of another engine, their time noted: seconds of making them and of judging."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(engine.model, engine.judges.corrector)
        self._clock = clock
        self.setup = self.judging = 0.0

    def remasker(
        self, gate: Gate | None, request: CompletionRequest, policy: Policy, names: NamesJudge | None, rules: StopRules
    ) -> Remasker | None:
        """See `Judges`."""
        started = self._clock()
        remasker = super().remasker(gate, request, policy, names, rules)
        if remasker is not None and remasker.judge is not None:
            self.setup += self._clock() - started
            remasker.judge = _Clocked(remasker.judge, self.clocked)
        if remasker is not None and remasker.guard is not None:
            guard = remasker.guard
            guard.syntax = _ClockedSyntax(guard.syntax, self.clocked)
            guard.ends = None if guard.ends is None else _ClockedEnds(guard.ends, self.clocked)
        return remasker

    def clocked(self, judge: Callable[[], T]) -> T:
        """What the judge says, its time noted."""
        started = self._clock()
        found = judge()
        self.judging += self._clock() - started
        return found


@dataclass(frozen=True, slots=True)
class _Clocked:
    """A judge whose time is noted."""

    judge: Judge
    clocked: Clocked[Finding | None]

    def check(self, written: str, pieces: Sequence[str], committed: Sequence[bool]) -> Finding | None:
        """See `Judge`."""
        return self.clocked(lambda: self.judge.check(written, pieces, committed))


@dataclass(frozen=True, slots=True)
class _ClockedSyntax:
    """The same for guesses."""

    syntax: Syntax
    clocked: Clocked[int | None]

    def breaks(self, written: str, pieces: Sequence[str]) -> int | None:
        """See `Syntax`."""
        return self.clocked(lambda: self.syntax.breaks(written, pieces))


@dataclass(frozen=True, slots=True)
class _ClockedEnds:
    """The same for ends."""

    ends: Ends
    clocked: Clocked[str]

    def objection(self, text: str, reason: Reason) -> str:
        """See `Ends`."""
        return self.clocked(lambda: self.ends.objection(text, reason))


class _WatchedDecoder(Decoder):
    """A decoder that keeps its last text and what it did."""

    def __init__(self, model: Model, clock: Clock) -> None:
        super().__init__(model)
        self._clock = clock
        self.done: _Decoded | None = None

    def texts(self, request: Request, rules: StopRules) -> list[Found]:
        """See `Decoder`."""
        trace, told = Trace(), request.trace
        request.trace, started = trace, self._clock()
        found = super().texts(request, rules)
        at = self._clock()
        request.trace = told
        self.done = _Decoded(found[0].text, found[0].reason, trace, at - started, at)
        return found
