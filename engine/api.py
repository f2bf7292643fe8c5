"""The engine's one call: a request with text in, a result with text out. Knows no LSP, no socket and no files.

A keystroke passes here as: prompt -> session -> decode loop -> overlap and gate -> result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from remask.contract.errors import StorageError
from remask.contract.messages import (
    Candidate,
    CompletionRequest,
    CompletionResult,
    Reason,
    Timing,
)
from remask.engine.attempts import Attempt, Finisher, distinct
from remask.engine.candidates import candidates
from remask.engine.control.steering import Steer, steered
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named, searching
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.trace import Trace
from remask.engine.ends import stop_rules
from remask.engine.judge.corrector import Corrector
from remask.engine.judge.corrector_file import corrector_for
from remask.engine.judges import Judges, known
from remask.engine.models.model import Model
from remask.engine.prompt import Prompt, build_prompt
from remask.engine.store import DiskStore
from remask.engine.tiers import Tiers
from remask.engine.writing import Writing


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How an engine is made. `model`: a checkpoint folder, the default model where None; `adapter`: one over it.

    `corrector`, `draft_head`: a head's file instead of the one beside the adapter or the model. `steer`: vectors that
    are added to hidden states.
    """

    model: Path | None = None
    adapter: Path | None = None
    corrector: Path | None = None
    draft_head: Path | None = None
    steer: tuple[Steer, ...] = ()
    device: str = "auto"
    dtype: str = "auto"
    cache: bool = True  # keep KV on disk between processes


class Engine:
    """A model with its sessions, and a corrector head where it has one. One thread calls it at a time."""

    def __init__(
        self,
        model: Model,
        store: DiskStore | None = None,
        corrector: Corrector | None = None,
        host_budget: int | None = None,
    ) -> None:
        self.model = model
        self.judges = Judges(model, corrector)
        self._decoder = Decoder(model)
        self._documents = Tiers(model.transformer, store, host_budget=host_budget)

    @classmethod
    def load(cls, options: EngineOptions) -> Engine:
        """Load the model; raises ModelError or InputError. A disk that refuses the cache is only warned of."""
        model = Model.load(
            options.model,
            adapter=options.adapter,
            draft_head=options.draft_head,
            device=options.device,
            dtype=options.dtype,
        )
        model = steered(model, options.model, options.adapter, options.steer)
        engine = cls(model, corrector=corrector_for(model, options.model, options.adapter, options.corrector))
        if options.cache:
            try:
                engine._documents.store = DiskStore(model.fingerprint)
            except StorageError as error:
                engine._documents.warning = error
            if policy_named("default", model.spec).planned:
                engine._decoder.calibrate()  # kept on disk: half a second once, where a keystroke cannot wait for it
        return engine

    def describe(self) -> dict[str, Any]:
        """What runs here, as JSON values."""
        transformer = self.model.transformer
        return {
            "model": self.model.spec.name,
            "device": str(transformer.device),
            "dtype": str(transformer.dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "sessions": len(self._documents),
        }

    def complete(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_draft: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> CompletionResult:
        """Fill the request's hole; `cancelled` is asked between passes. Raises InputError for an unknown policy.

        `on_draft` is called with the first text as far as it is written, before the gate has judged it and others are
        weighed against it; `trace` records what every pass did.

        Several candidates come from the same prompt: of a search, where the checkpoint is read causally, ranked by its
        values; else one greedy, the others drawn at a temperature, ranked by their mean log-probability and by names
        that nothing defines. All of them are past the gate.
        """
        started = time.monotonic()
        policy = searching(policy_named(request.policy, self.model.spec), request.candidates, self.model.spec)
        result = partial(CompletionResult, language=request.language, model=self.model.spec.name, policy=policy.name)
        gate = self.judges.gate(request)
        if gate is None and not known(request.language):
            return result(text="", reason=Reason.LANGUAGE, detail=f"There is no grammar for {request.language!r}.")
        prompt = build_prompt(
            self.model, request.prefix, request.suffix, request.language, request.context, request.guide
        )
        budget = Budget(self._room(prompt, request), started + request.deadline_ms / 1000, cancelled)
        rules = stop_rules(gate.grammar if gate is not None else None, request, self.model.spec)
        names = self.judges.names(gate, request, thorough=trace is not None or not policy.verifies)
        finisher = Finisher(gate, names, request.prefix, request.suffix)
        session, guess = self._documents.open(request.document), self.model.encode(request.draft)

        def hole(temperature: float = 0.0, seed: int = 0) -> Request:
            return Request(
                session,
                policy,
                budget,
                guess=guess,
                temperature=temperature,
                seed=seed,
                on_draft=on_draft if seed == 0 else None,
                trace=trace,
                remasker=self.judges.remasker(gate, request, policy, names, rules),
                doubter=self.judges.doubter(request, policy),
                aim=finisher.aim(),
                wanted=request.candidates,
                shelf=self._documents.store,
            )

        write = Writing(prompt, rules, finisher, self.model.decode)
        attempts = candidates(self.model, self._decoder, hole, write, request.candidates)
        self._documents.trim()
        return _completed(result, attempts, request.candidates, started)

    def _room(self, prompt: Prompt, request: CompletionRequest) -> int:
        """Tokens that may be written without leaving the positions that the model knows."""
        spec = self.model.spec
        return max(1, min(request.max_tokens, spec.shape.max_positions - len(prompt) - 2 * spec.block_size))

    def close(self) -> None:
        """Put every session on disk, where there is a disk tier."""
        self.judges.close()
        self._documents.save_all()

    def save(self, document: str) -> None:
        """Put a document's KV on disk, where there is a disk tier. A refusal is kept in `storage_warning`."""
        self._documents.save(document)

    def forget(self, document: str) -> None:
        """Let go of a document's session."""
        self._documents.forget(document)

    def leave(self, document: str) -> None:
        """Let a document's session leave the device's memory, as where the budget of all is exceeded."""
        self._documents.leave(document)

    @property
    def storage_warning(self) -> StorageError | None:
        """What a disk refused last; nothing but the cache is lost by that."""
        return self._documents.warning


def _completed(
    result: Callable[..., CompletionResult], attempts: list[Attempt], wanted: int, started: float
) -> CompletionResult:
    """The best of the attempts, the others that are as different as wanted, and what all of them cost."""
    best, *others = distinct(attempts)[:wanted] or attempts[:1]
    first = attempts[0]
    return result(
        text=best.text,
        reason=best.reason,
        detail=best.detail,
        score=best.score,
        names=best.names,
        others=tuple(Candidate(o.text, o.reason, o.score) for o in others),
        tokens=sum(a.tokens for a in attempts),
        forwards=sum(a.forwards for a in attempts),
        prompt=first.prompt,
        ms=Timing(
            total=_milliseconds(started, time.monotonic()),
            prompt=_milliseconds(started, first.prompted),
            decode=round(sum(a.decode_ms for a in attempts), 1),
        ),
    )


def _milliseconds(start: float, end: float) -> float:
    return round((end - start) * 1000, 1)
