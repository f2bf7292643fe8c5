"""Fills evaluation tasks the way the product does: as the model's own text, or as the editor would show it.

Knows tasks and the engine; judges nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from remask.contract.messages import CompletionRequest, Reason
from remask.engine.api import Engine
from remask.engine.attempts import Finisher
from remask.engine.chat import reply_end
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import Policy
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import EndRule, StopRules
from remask.engine.evaluation.tasks import Task
from remask.engine.judge.gate import Gate
from remask.engine.models.model import Model
from remask.engine.models.spec import Layout
from remask.engine.prompt import build_prompt
from remask.engine.session import Session
from remask.grammars import grammar_for_language

DEADLINE_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """One policy's text for one task and what it cost.

    `forwards` are decoding passes, without the prompt's; `extra` is what else drafts cost, in one-token passes, where
    that is known.
    """

    text: str
    reason: Reason
    tokens: int
    forwards: int
    prompt_tokens: int
    prompt_passes: int
    prompt_ms: float
    decode_ms: float
    total_ms: float
    extra: float = 0.0


class Filler(Protocol):
    """Something that fills tasks, each as if nothing had been read before."""

    def fill(self, task: Task, policy: Policy) -> Filled:
        """Fill one task."""
        ...


class OwnText:
    """The model's own text, as published harnesses take it: greedy, the true length unknown, nothing judged.

    A policy that searches chooses among the model's texts with the parser's help.

    It ends at the model's end token, where the split ends every middle (`end`), or after `max_tokens`. `lines`: every
    middle is a whole line; one that the model ends without a line feed gets it, as in the product (`judge.finish`).
    """

    def __init__(self, model: Model, max_tokens: int, end: EndRule | None, *, lines: bool = False) -> None:
        self._model = model
        self._decoder = Decoder(model)
        self._session = Session(model.transformer.new_cache())
        self._max_tokens = max_tokens
        self._lines = lines
        self._rules = StopRules(
            Reason.LINE,
            suffix="",
            end=end or (lambda draft: None),
            reply_end=reply_end if model.spec.layout is Layout.CHAT else None,
        )

    def fill(self, task: Task, policy: Policy) -> Filled:
        """Read the prompt from nothing and decode."""
        self._session.cut_to([])
        started = time.perf_counter()
        prompt = build_prompt(self._model, task.prefix, task.suffix, task.language, task.context)
        spec = self._model.spec
        room = max(1, min(self._max_tokens, spec.shape.max_positions - len(prompt) - 2 * spec.block_size))
        request = Request(self._session, policy, Budget(room))
        if policy.branches > 1:
            grammar = grammar_for_language(task.language)
            gate = None if grammar is None else Gate(grammar, task.prefix, task.suffix)
            request.aim = Finisher(gate, None, task.prefix, task.suffix).aim()
        counts = self._decoder.prepare(request, prompt)
        prompted = time.perf_counter()
        text, reason = self._decoder.decode(request, self._rules)
        ended = time.perf_counter()
        if self._lines and text.strip() and not text.endswith("\n") and reason is Reason.END:
            text += "\n"
        return Filled(
            text=text,
            reason=reason,
            tokens=len(request.written),
            forwards=request.forwards - counts.passes,
            prompt_tokens=counts.total,
            prompt_passes=counts.passes,
            prompt_ms=(prompted - started) * 1000,
            decode_ms=(ended - prompted) * 1000,
            total_ms=(ended - started) * 1000,
            extra=request.extra,
        )


class AsShown:
    """What the editor would show: the engine's whole path, with its own ends, the overlap and the parser gate."""

    def __init__(self, engine: Engine, max_tokens: int) -> None:
        self._engine = engine
        self._max_tokens = max_tokens

    def fill(self, task: Task, policy: Policy) -> Filled:
        """Ask the engine with a document that it does not know."""
        document = f"eval:{task.name}:{policy.name}"
        result = self._engine.complete(
            CompletionRequest(
                document=document,
                language=task.language,
                prefix=task.prefix,
                suffix=task.suffix,
                policy=policy.name,
                max_tokens=self._max_tokens,
                deadline_ms=DEADLINE_MS,
                context=task.context,
            )
        )
        self._engine.forget(document)
        return Filled(
            text=result.text,
            reason=result.reason,
            tokens=result.tokens,
            forwards=result.forwards - result.prompt.passes,
            prompt_tokens=result.prompt.total,
            prompt_passes=result.prompt.passes,
            prompt_ms=result.ms.prompt,
            decode_ms=result.ms.decode,
            total_ms=result.ms.total,
        )
