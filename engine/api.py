"""The engine's one call: a request with text in, a result with text out. Knows no LSP, no socket and no files.

A keystroke passes here as: prompt -> session -> decode loop -> overlap and gate -> result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from remask.contract.errors import InputError, StorageError
from remask.contract.messages import (
    Candidate,
    CompletionRequest,
    CompletionResult,
    Extent,
    NameFacts,
    Purpose,
    Reason,
    Timing,
)
from remask.engine.attempts import Attempt, Finisher, distinct
from remask.engine.candidates import at_once, side_by_side_attempts
from remask.engine.chat import reply_end
from remask.engine.control.steering import Steer, steered
from remask.engine.decode.guard import Guard
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named, searching
from remask.engine.decode.policy import Policy, Remask
from remask.engine.decode.remask import Falling, Remasker
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules, first_line_end, fitted, line_before_code
from remask.engine.decode.trace import Trace
from remask.engine.judge.blame import Blame
from remask.engine.judge.corrector import ANOTHER, Corrector
from remask.engine.judge.corrector_file import corrector_for
from remask.engine.judge.doubter import Doubter
from remask.engine.judge.ending import Ending
from remask.engine.judge.gate import Gate
from remask.engine.judge.names import NamesJudge, sentence
from remask.engine.judge.names_blame import CanvasJudge, InTurn, NamesBlame
from remask.engine.judge.packages import Packages
from remask.engine.models.model import Model
from remask.engine.models.spec import Layout, ModelSpec
from remask.engine.prompt import Prompt, build_prompt
from remask.engine.store import DiskStore
from remask.engine.tiers import Tiers
from remask.grammars import Grammar, GrammarError, grammar_for_language
from remask.grammars.blocks import block_end, statement_end
from remask.grammars.regions import completion_extent

log = logging.getLogger(__name__)

TEMPERATURE = 0.7  # of drawn candidates; the common choice for sampling code autoregressively
TRIES_PER_CANDIDATE = 2  # drawn texts are often equal, or do not hold

GATE_MS = 1_000  # what judging may take beyond the decoding's deadline


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
        self.corrector = corrector
        self._decoder = Decoder(model)
        self._documents = Tiers(model.transformer, store, host_budget=host_budget)
        self._packages = Packages()
        self._unjudged: set[str] = set()  # languages whose grammar failed, each warned of once

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

        `on_draft` is called with the first candidate's text as far as it is final, before the gate has judged it;
        `trace` records what every pass did.

        Several candidates come from the same prompt: of a search, where the checkpoint is read causally, ranked by its
        values; else one greedy, the others drawn at a temperature, ranked by their mean log-probability and by names
        that nothing defines. All of them are past the gate.
        """
        started = time.monotonic()
        policy = searching(policy_named(request.policy, self.model.spec), request.candidates, self.model.spec)
        result = partial(CompletionResult, language=request.language, model=self.model.spec.name, policy=policy.name)
        try:
            grammar = grammar_for_language(request.language)
            if grammar is None:
                return result(text="", reason=Reason.LANGUAGE, detail=f"There is no grammar for {request.language!r}.")
            gate = Gate(grammar, request.prefix, request.suffix, deadline_ms=min(GATE_MS, request.deadline_ms))
        except GrammarError as error:
            self._warn_once(request.language, error)
            grammar = gate = None
        prompt = build_prompt(
            self.model, request.prefix, request.suffix, request.language, request.context, request.guide
        )
        budget = Budget(self._room(prompt, request), started + request.deadline_ms / 1000, cancelled)
        rules = stop_rules(grammar, request, self.model.spec)
        session = self._documents.open(request.document)
        names = self._names(grammar, request, thorough=trace is not None or not policy.verifies)
        guess = self.model.encode(request.draft)
        hole = partial(Request, session, policy, budget, trace=trace, guess=guess, shelf=self._documents.store)
        judge = partial(self._remasker, gate, request, policy, names, rules)
        doubter = partial(self._doubter, request, policy)
        finisher = Finisher(gate, names, request.prefix, request.suffix)
        aim = finisher.aim() if policy.branches > 1 else None
        greedy = hole(on_draft=on_draft, remasker=judge(), aim=aim, wanted=request.candidates, doubter=doubter())
        attempts = self._attempts(greedy, prompt, rules, finisher)
        seeds = range(1, TRIES_PER_CANDIDATE * (request.candidates - 1) + 1)
        step = at_once(self.model, greedy, request.candidates - 1)
        for at in range(0, len(seeds), step):
            if policy.branches > 1 or len(distinct(attempts)) >= request.candidates or budget.spent(0) is not None:
                break
            some = seeds[at : at + step]
            drawn = [hole(temperature=TEMPERATURE, seed=n, remasker=judge(), doubter=doubter()) for n in some]
            attempts += self._drawn(drawn, prompt, rules, finisher)
        self._documents.trim()
        best, *others = distinct(attempts)[: request.candidates] or attempts[:1]
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

    def _drawn(self, holes: list[Request], prompt: Prompt, rules: StopRules, finisher: Finisher) -> list[Attempt]:
        """The attempts of one hole, or of several at once."""
        if len(holes) == 1:
            return self._attempts(holes[0], prompt, rules, finisher)
        return side_by_side_attempts(self.model, holes, lambda d, h: self._attempts(h, prompt, rules, finisher, d))

    def _attempts(
        self, hole: Request, prompt: Prompt, rules: StopRules, finisher: Finisher, decoder: Decoder | None = None
    ) -> list[Attempt]:
        """Read what the session lacks of the prompt, decode, and judge; several texts come of a search."""
        decoder = decoder or self._decoder
        if hole.trace is not None:
            hole.trace.begin(hole.seed, self.model.decode)
        counts = decoder.prepare(hole, prompt)
        prompted = time.monotonic()
        if hole.trace is not None:
            hole.trace.prompted(counts)
        texts = decoder.texts(hole, rules)
        decode_ms = _milliseconds(prompted, time.monotonic())
        attempts: list[Attempt] = []
        for text in texts:
            finished = finisher.finish(text.text, text.reason)
            facts = NameFacts() if hole.budget.spent(0) is not None else finisher.facts(text.text, finished.text)
            if hole.trace is not None:
                hole.trace.judged("parser", text.text, finished.text, finished.reason.value, finished.detail)
                hole.trace.judged("names", text.text, finished.text, "", sentence(facts))
            attempts.append(
                Attempt(
                    text=finished.text,
                    reason=finished.reason,
                    detail=finished.detail,
                    score=round(text.value if len(texts) > 1 else hole.score, 4),
                    names=facts,
                    searched=len(texts) > 1,
                    doubt=hole.doubter.fork(len(hole.written)).mean if hole.doubter is not None else 0.0,
                    tokens=len(text.branch.written),
                    forwards=0 if attempts else hole.forwards,  # of all of them
                    prompt=counts,
                    prompted=prompted,
                    decode_ms=0.0 if attempts else decode_ms,
                )
            )
        return attempts

    def _remasker(
        self, gate: Gate | None, request: CompletionRequest, policy: Policy, names: NamesJudge | None, rules: StopRules
    ) -> Remasker | None:
        """The judges of unverified canvases: what is verified is the causal reading's own text."""
        wanted = policy.judges
        if policy.verifies or not wanted:
            return None
        if self.corrector is None and Remask.CORRECTOR in wanted and policy.remask != Remask.ALL:
            raise InputError(f"The policy {policy.name!r} wants a corrector head, and there is none.", advice=ANOTHER)
        readers: list[CanvasJudge] = []
        guard = None
        if gate is not None and Remask.PARSER in wanted:
            closed = self.model.spec.layout is Layout.HOLE  # one canvas from the prefix to the suffix
            blame = Blame(gate.grammar, request.prefix, request.suffix, closed=closed)
            readers.append(blame)
            ending = Ending(gate, request.prefix, request.suffix)
            guard = Guard(blame, self.model.decode, ending, rules, frozenset(self.model.spec.end_ids))
        if names is not None and Remask.NAMES in wanted:
            readers.append(NamesBlame(names))
        return Remasker(
            InTurn(*readers) if readers else None,
            self.model.decode,
            Falling(policy.doubt, policy.fall, policy.surer) if Remask.CONFIDENCE in wanted else None,
            self.corrector if Remask.CORRECTOR in wanted else None,
            guard,
        )

    def _doubter(self, request: CompletionRequest, policy: Policy) -> Doubter | None:
        """Hears the corrector head on a text that is ranked among others."""
        several = request.candidates > 1 or policy.branches > 1
        return Doubter(self.corrector) if self.corrector is not None and several else None

    def _names(self, grammar: Grammar | None, request: CompletionRequest, *, thorough: bool) -> NamesJudge | None:
        """The judge of names; where that can change what is shown, installed packages are looked up, too.

        None where it can change nothing and the request does not ask for it: it costs as much as a pass or two.
        """
        thorough |= request.candidates > 1 or request.purpose is Purpose.FILL
        if grammar is None or not (thorough or request.name_facts):
            return None
        others = (snippet.text for snippet in request.context)
        return NamesJudge(grammar, request.prefix, request.suffix, others, self._packages if thorough else None)

    def _room(self, prompt: Prompt, request: CompletionRequest) -> int:
        """Tokens that may be written without leaving the positions that the model knows."""
        spec = self.model.spec
        return max(1, min(request.max_tokens, spec.shape.max_positions - len(prompt) - 2 * spec.block_size))

    def _warn_once(self, language: str, error: GrammarError) -> None:
        if language not in self._unjudged:
            self._unjudged.add(language)
            log.warning("Completions in %s are not judged by a parser: %s", language, error)

    def close(self) -> None:
        """Put every session on disk, where there is a disk tier."""
        self._packages.close()
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


def stop_rules(grammar: Grammar | None, request: CompletionRequest, spec: ModelSpec) -> StopRules:
    """The end of the line or of the block, as the request or else the text around the cursor wants it.

    Without a grammar it is the end of the first line that holds something.
    """
    rules = partial(StopRules, suffix=request.suffix, reply_end=reply_end if spec.layout is Layout.CHAT else None)
    extent = request.extent
    if grammar is None:
        return rules(Reason.LINE, end=first_line_end)
    if extent is Extent.AUTO:
        extent = completion_extent(grammar, request.prefix, request.suffix)
    fit = partial(fitted, prefix=request.prefix, suffix=request.suffix)
    if extent is Extent.BLOCK:
        return rules(Reason.BLOCK, end=fit(partial(block_end, grammar, request.prefix)))
    if request.suffix.partition("\n")[0].strip():
        return rules(Reason.LINE, end=partial(line_before_code, request.prefix))
    return rules(Reason.LINE, end=fit(partial(statement_end, grammar, request.prefix)))


def _milliseconds(start: float, end: float) -> float:
    return round((end - start) * 1000, 1)
