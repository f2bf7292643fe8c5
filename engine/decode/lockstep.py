"""Several decodings side by side, whose passes go through the model together: its weights are read once for all.

Each job runs in a thread of its own, but only one at a time, until it asks for a pass; when all wait for one, the
passes are run as one. So a job is written as if it were alone. Knows a transformer; knows no request and no text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Semaphore, Thread
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from remask.engine.models.kv import KVCache
from remask.engine.models.memory import is_shortage
from remask.engine.models.passes import Best, Confidence, Pass, Taps
from remask.engine.models.transformer import Transformer

T = TypeVar("T")
Work = Callable[[Transformer], T]
"""What a job does, with the transformer that joins its passes with the others'."""


def side_by_side(transformer: Transformer, works: Sequence[Work[T]]) -> list[T]:
    """Run all works to their ends; their results in order. Raises what the first of them raised that did."""
    jobs = [_Job(transformer, work) for work in works]
    for job in jobs:
        job.start()
        job.back.acquire()
    while live := [job for job in jobs if job.waits]:
        asked = [job for job in live if not job.forward] or live  # what a pass gave is taken before the next pass
        for job, answer in zip(asked, _answers(transformer, asked), strict=True):
            job.answer = answer
            job.go.release()
            job.back.acquire()
    for job in jobs:
        if job.error is not None:
            raise job.error
    return [job.result for job in jobs]


class _Job(Thread, Generic[T]):
    """One work in a thread that runs while `side_by_side` waits for `back`, and waits for `go` when it asks."""

    def __init__(self, transformer: Transformer, work: Work[T]) -> None:
        super().__init__(daemon=True)
        self.go, self.back = Semaphore(0), Semaphore(0)
        self.question: tuple[str, tuple[Any, ...]] | None = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.result: T
        self._work = work
        self._joined = _Joined(transformer, self.ask)

    @property
    def waits(self) -> bool:
        """Whether it asks for something."""
        return self.question is not None

    @property
    def forward(self) -> bool:
        """Whether it asks for a pass."""
        return self.question is not None and self.question[0] == "forward"

    def run(self) -> None:
        """The work, whatever comes of it."""
        try:
            self.result = self._work(self._joined)
        except BaseException as error:  # raised again by whoever waits
            self.error = error
        finally:
            del self._work, self._joined  # a cycle through this job, whose memory would wait for the collector
            self.question = self.answer = None
            self.back.release()

    def ask(self, name: str, *arguments: Any) -> Any:
        """Have a method of the transformer called, beside others' calls; its result, or what it raises."""
        self.question = name, arguments
        self.back.release()
        self.go.acquire()
        self.question = None
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class _Joined(Transformer):
    """The transformer as a job sees it."""

    def __init__(self, real: Transformer, ask: Callable[..., Any]) -> None:
        self.shape, self.steering = real.shape, real.steering
        self._real, self._ask = real, ask

    @property
    def device(self) -> torch.device:
        return self._real.device

    @property
    def dtype(self) -> torch.dtype:
        return self._real.dtype

    @property
    def activations(self) -> torch.dtype:
        return self._real.activations

    def new_cache(self) -> KVCache:
        return self._real.new_cache()

    def normed(self, hidden: Tensor) -> Tensor:
        return self._real.normed(hidden)

    def forward(self, step: Pass, cache: KVCache, taps: Taps | None = None) -> Tensor:
        if taps is not None:  # its states are of this pass alone
            return self._real.forward(step, cache, taps)
        hidden: Tensor = self._ask("forward", step, cache)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        scores: Tensor = self._ask("logits", hidden)
        return scores

    def confidence(self, hidden: Tensor, never: Tensor) -> Confidence:
        made: Confidence = self._ask("confidence", hidden, never)
        return made

    def best(self, hidden: Tensor, never: Tensor, count: int = 1) -> Best:
        return self._real.best(hidden, never, count)


def _answers(transformer: Transformer, jobs: Sequence[_Job[Any]]) -> list[Any]:
    """An answer to each job's question, in order: those of one kind are asked as one."""
    answers: dict[int, Any] = {}
    kinds = {"forward": _passes, "logits": _logits, "confidence": _confidence}
    for kind, answer in kinds.items():
        asked = {n: job.question[1] for n, job in enumerate(jobs) if job.question and job.question[0] == kind}
        if asked:
            answers |= dict(zip(asked, _in_halves(answer, transformer, list(asked.values())), strict=True))
    return [answers[number] for number in range(len(jobs))]


Answer = Callable[[Transformer, list[tuple[Any, ...]]], Sequence[Any]]


def _in_halves(answer: Answer, transformer: Transformer, asked: list[tuple[Any, ...]]) -> list[Any]:
    """All at once, or half of them at a time where memory is short; what one alone raises is its answer."""
    try:
        with torch.inference_mode():
            return list(answer(transformer, asked))
    except Exception as error:
        if len(asked) == 1 or not is_shortage(error):
            return [error] * len(asked)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    half = len(asked) // 2
    return [*_in_halves(answer, transformer, asked[:half]), *_in_halves(answer, transformer, asked[half:])]


def _passes(transformer: Transformer, asked: list[tuple[Any, ...]]) -> Sequence[Tensor]:
    return transformer.forward_all([step for step, _ in asked], [cache for _, cache in asked])


def _logits(transformer: Transformer, asked: list[tuple[Any, ...]]) -> Sequence[Tensor]:
    rows: list[Tensor] = [hidden for (hidden,) in asked]
    return list(transformer.logits(torch.cat(rows)).split([len(one) for one in rows]))


def _confidence(transformer: Transformer, asked: list[tuple[Any, ...]]) -> Sequence[Confidence]:
    """Brought over by one transfer for all."""
    made = transformer.confidence(torch.cat([hidden for hidden, _ in asked]), asked[0][1]).on_cpu()
    counts = [len(hidden) for hidden, _ in asked]
    return [Confidence(*parts) for parts in zip(*(one.split(counts) for one in made), strict=True)]
