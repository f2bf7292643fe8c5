"""Syntax errors that completions add, before and after the gate, and what the judges cost: policies in turn in one run.

The referee is none of the judges: whole files are parsed, and what cannot become a program any more is told by
Python's own compiler, or by the parser's first true error. Prints nothing.
"""

from __future__ import annotations

import codeop
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from remask.contract.messages import CompletionRequest, Reason
from remask.engine.decode.policy import Policy
from remask.engine.evaluation.infilling import Scorer
from remask.engine.evaluation.metrics import edit_similarity, parses
from remask.engine.evaluation.tasks import Task
from remask.engine.evaluation.watched import Watched, WatchedEngine
from remask.grammars import grammar_for_language
from remask.grammars.errors import viable_prefix

DEADLINE_MS = 600_000


class Standing(StrEnum):
    """How a file stands with a text in its hole."""

    WHOLE = "whole"  # it parses
    OPEN = "open"  # the text can still become whole, and the file did not parse without it, or its tokens ran out
    EMPTY = "empty"  # there is no text
    ADDED = "added"  # the text brings an error that the file did not have


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy's figures over `n` tasks; `draft` is the text before the gate, `shown` the one behind it.

    drafts, shown: how many stand how (see `Standing`). pass rates: share whose test passes, None where nothing can be
    run. similarity: of the drafts, see `edit_similarity`. canvas_passes: denoising passes a canvas; removed: tokens
    taken back. Milliseconds in all: decoding without any judge, judges of unfinished canvases, gate and names; share:
    what judging takes of decoding.
    """

    policy: str
    n: int
    drafts: dict[str, int]
    shown: dict[str, int]
    draft_pass_rate: float | None
    shown_pass_rate: float | None
    similarity: float
    tokens: int
    forwards: int
    canvas_passes: float
    removed: int
    decode_ms: float
    judge_ms: float
    gate_ms: float
    share: float


@dataclass(slots=True)
class Report:
    """What `remask eval syntax` prints."""

    split: str
    model: str
    dtype: str
    device: str
    threads: int
    seed: int
    tasks: int
    isolation: str = ""
    interrupted: bool = False
    languages: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Outcome:
    watched: Watched
    draft: Standing
    shown: Standing
    draft_passed: bool | None
    shown_passed: bool | None
    similarity: float


def standing(task: Task, text: str, *, finished: bool = True) -> Standing:
    """How the task's file stands with `text` in its hole; one that is not `finished` may do without its end.

    Raises GrammarError where the parser cannot be loaded.
    """
    if parses(task.language, task.prefix + text + task.suffix):
        return Standing.WHOLE
    if not text.strip():
        return Standing.EMPTY
    if finished and parses(task.language, task.prefix + task.suffix):
        return Standing.ADDED
    goes_on = _goes_on(task.language, task.prefix + text, cut=not finished) or not _goes_on(task.language, task.prefix)
    return Standing.OPEN if goes_on else Standing.ADDED


def measure(
    engine: WatchedEngine,
    tasks: Sequence[Task],
    policies: Sequence[Policy],
    max_tokens: int,
    report: Report,
    advance: Callable[[], None] = lambda: None,
) -> Report:
    """Fill every task by every policy in turn; Ctrl-C ends it with the tasks that all of them have done."""
    scorer = Scorer()
    done: dict[str, list[_Outcome]] = {policy.name: [] for policy in policies}
    try:
        for policy in policies:  # the first passes of a process are slow
            _fill(engine, tasks[0], policy, max_tokens)
        for number, task in enumerate(tasks):
            turn = number % len(policies)
            for policy in (*policies[turn:], *policies[:turn]):
                done[policy.name].append(_outcome(scorer, task, _fill(engine, task, policy, max_tokens)))
            engine.forget(task.name)
            advance()
    except KeyboardInterrupt:
        whole = min(len(outcomes) for outcomes in done.values())
        if whole == 0:
            raise
        report.interrupted = True
        done = {name: outcomes[:whole] for name, outcomes in done.items()}
    report.rows = [_row(name, outcomes) for name, outcomes in done.items()]
    report.languages = dict(sorted(Counter(task.language for task in tasks[: report.rows[0].n]).items()))
    return report


def _fill(engine: WatchedEngine, task: Task, policy: Policy, max_tokens: int) -> Watched:
    request = CompletionRequest(
        document=task.name,
        language=task.language,
        prefix=task.prefix,
        suffix=task.suffix,
        policy=policy.name,
        max_tokens=max_tokens,
        deadline_ms=DEADLINE_MS,
        context=task.context,
    )
    return engine.watch(request)


def _outcome(scorer: Scorer, task: Task, watched: Watched) -> _Outcome:
    draft, shown = watched.draft, watched.result.text
    return _Outcome(
        watched=watched,
        draft=standing(task, draft, finished=watched.ended is not Reason.BUDGET),
        shown=standing(task, shown),
        draft_passed=scorer.verdict(task, draft)[1],
        shown_passed=scorer.verdict(task, shown)[1],
        similarity=edit_similarity(draft, task.truth),
    )


def _row(policy: str, outcomes: Sequence[_Outcome]) -> Row:
    watched = [one.watched for one in outcomes]
    judge, gate = sum(w.judge_ms for w in watched), sum(w.gate_ms for w in watched)
    decode = sum(w.decode_ms for w in watched)
    canvases = sum(w.canvases for w in watched)
    return Row(
        policy=policy,
        n=len(outcomes),
        drafts=_counted(one.draft for one in outcomes),
        shown=_counted(one.shown for one in outcomes),
        draft_pass_rate=_rate([one.draft_passed for one in outcomes]),
        shown_pass_rate=_rate([one.shown_passed for one in outcomes]),
        similarity=round(sum(one.similarity for one in outcomes) / len(outcomes), 4),
        tokens=sum(w.result.tokens for w in watched),
        forwards=sum(w.result.forwards - w.result.prompt.passes for w in watched),
        canvas_passes=round(sum(w.passes for w in watched) / canvases, 3) if canvases else 0.0,
        removed=sum(w.removed for w in watched),
        decode_ms=round(decode, 1),
        judge_ms=round(judge, 1),
        gate_ms=round(gate, 1),
        share=round((judge + gate) / decode, 4) if decode else 0.0,
    )


def _counted(standings: Any) -> dict[str, int]:
    counts = Counter(standings)
    return {str(name): counts[name] for name in Standing}


def _rate(passed: Sequence[bool | None]) -> float | None:
    known = [one for one in passed if one is not None]
    return round(sum(known) / len(known), 4) if known else None


def _goes_on(language: str, text: str, *, cut: bool = False) -> bool:
    """Whether `text` can still become a program by adding to its end; a `cut` one may end within a statement."""
    if language != "python":
        return _viable(language, text)
    whole = text[: text.rfind("\n") + 1]  # Python's compiler takes a line that is cut off for a wrong one
    return _compiles(text) or (cut and _compiles(whole) and _viable(language, text))


def _compiles(text: str) -> bool:
    try:
        codeop.compile_command(text, symbol="exec")
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False
    return True


def _viable(language: str, text: str) -> bool:
    grammar = grammar_for_language(language)
    try:
        return grammar is not None and viable_prefix(grammar, text)
    except ValueError:  # too large to be looked at
        return False
