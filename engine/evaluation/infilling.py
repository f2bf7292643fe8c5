"""Quality of infilling: every task filled by every policy in turn, in one run, so that their ratios hold.

Knows tasks, a filler and the sandbox; prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from remask.engine.decode.policy import Policy
from remask.engine.evaluation.fill import Filled, Filler
from remask.engine.evaluation.metrics import (
    edit_similarity,
    exact_match,
    interval,
    kept_characters,
    parses,
    percentile,
)
from remask.engine.evaluation.sandbox import run_program
from remask.engine.evaluation.tasks import Task
from remask.engine.models.model import Model


@dataclass(frozen=True, slots=True)
class Scored:
    """A filled task and what its text is worth; `passed` is None where the task has no test."""

    task: Task
    filled: Filled
    passed: bool | None
    exact: bool
    similarity: float
    kept: int
    parses: bool

    @property
    def failure(self) -> str:
        """The first thing wrong with the text, or nothing: empty, syntax, test, or differs where there is no test."""
        if self.passed or (self.passed is None and self.exact):
            return ""
        if not self.filled.text.strip():
            return "empty"
        if not self.parses:
            return "syntax"
        return "differs" if self.passed is None else "test"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, for a person to look at."""
        filled = self.filled
        return {
            "task": self.task.name,
            "text": filled.text,
            "truth": self.task.truth,
            "passed": self.passed,
            "exact": self.exact,
            "edit_similarity": round(self.similarity, 4),
            "parses": self.parses,
            "reason": filled.reason,
            "tokens": filled.tokens,
            "forwards": filled.forwards,
            "ms": round(filled.total_ms, 1),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy's figures over `n` tasks. Rates are 0 to 1, times in milliseconds.

    pass_rate: None where nothing can be run; pass_interval: its 95 % interval. kept_rate: share of all written
    characters that survive in the truth. failures: how many texts failed by what first. tpf: tokens a
    decoding pass, `extra` being passes, too; prompts are counted apart. extra: what drafts cost beside, in one-token
    passes. ms_p50 and ms_p95: a whole task, from text to text. ended: how many texts ended for which reason. same_text:
    share of texts equal to the first policy's.
    """

    policy: str
    n: int
    pass_rate: float | None
    pass_interval: tuple[float, float] | None
    exact_match: float
    edit_similarity: float
    kept_rate: float
    parse_rate: float
    empty_rate: float
    failures: dict[str, int]
    tokens: int
    forwards: int
    extra: float
    tpf: float
    tok_s: float
    prompt_tokens: int
    prompt_passes: int
    ms_p50: float
    ms_p95: float
    ms_total: float
    ms_prompt_p50: float
    ms_decode_p50: float
    same_text: float
    ended: dict[str, int]


@dataclass(slots=True)
class Report:
    """What `remask eval infilling` prints; the first policy's figures stand at the top of its JSON."""

    split: str
    model: str
    dtype: str
    device: str
    threads: int
    seed: int
    tasks: int
    gate: bool
    context: bool = False
    isolation: str = ""
    interrupted: bool = False
    rows: list[Row] = field(default_factory=list)
    scored: dict[str, list[Scored]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        own = {name: getattr(self, name) for name in self.__slots__ if name not in ("rows", "scored")}
        rows = [asdict(row) for row in self.rows]
        return own | rows[0] | {"policies": rows}

    def samples(self) -> list[dict[str, Any]]:
        """Every text, task by task."""
        return [
            {"policy": policy} | one.to_dict()
            for turn in zip(*([(p, s) for s in scored] for p, scored in self.scored.items()), strict=True)
            for policy, one in turn
        ]


def describe(model: Model) -> dict[str, Any]:
    """What ran: the fields of a report that the model and the machine decide."""
    transformer = model.transformer
    return {
        "model": model.spec.name,
        "dtype": str(transformer.dtype).removeprefix("torch."),
        "device": str(transformer.device),
        "threads": torch.get_num_threads(),
    }


class Scorer:
    """Judges filled tasks; equal texts for one task are judged once."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, str], tuple[bool, bool | None]] = {}

    def score(self, task: Task, filled: Filled) -> Scored:
        """Compare with the truth, parse, and run the task's test where it has one."""
        sound, passed = self.verdict(task, filled.text)
        return Scored(
            task=task,
            filled=filled,
            passed=passed,
            exact=exact_match(filled.text, task.truth),
            similarity=edit_similarity(filled.text, task.truth),
            kept=kept_characters(filled.text, task.truth),
            parses=sound,
        )

    def verdict(self, task: Task, text: str) -> tuple[bool, bool | None]:
        """Whether the whole file parses with `text` in it, and whether its test passes (None where it has none)."""
        key = task.name, text
        if key not in self._verdicts:
            self._verdicts[key] = _judge(task, text)
        return self._verdicts[key]


def evaluate(
    filler: Filler,
    tasks: Sequence[Task],
    policies: Sequence[Policy],
    report: Report,
    advance: Callable[[], None] = lambda: None,
) -> Report:
    """Fill and judge `tasks`; Ctrl-C ends it with the tasks that every policy has done, if there is one."""
    scorer = Scorer()
    done: dict[str, list[Scored]] = {p.name: [] for p in policies}
    try:
        for policy in policies:  # the first passes of a process are slow
            filler.fill(tasks[0], policy)
        for number, task in enumerate(tasks):
            turn = number % len(policies)
            for policy in (*policies[turn:], *policies[:turn]):
                done[policy.name].append(scorer.score(task, filler.fill(task, policy)))
            advance()
    except KeyboardInterrupt:
        whole = min(len(scored) for scored in done.values())
        if whole == 0:
            raise
        report.interrupted = True
        done = {name: scored[:whole] for name, scored in done.items()}
    report.scored = done
    first = done[policies[0].name]
    report.rows = [summarise(name, scored, first) for name, scored in done.items()]
    return report


def summarise(policy: str, scored: Sequence[Scored], first: Sequence[Scored]) -> Row:
    """One policy's figures; `first` are the same tasks as the first policy filled them."""
    count = len(scored)
    filled = [one.filled for one in scored]
    passed = [one.passed for one in scored if one.passed is not None]
    tokens, forwards = sum(f.tokens for f in filled), sum(f.forwards for f in filled)
    extra = sum(f.extra for f in filled)
    seconds = sum(f.decode_ms for f in filled) / 1000
    written = sum(len(f.text.rstrip()) for f in filled)
    low, high = interval(sum(passed), len(passed))
    return Row(
        policy=policy,
        n=count,
        pass_rate=round(sum(passed) / len(passed), 4) if passed else None,
        pass_interval=(round(low, 4), round(high, 4)) if passed else None,
        exact_match=_share(one.exact for one in scored),
        edit_similarity=_share(one.similarity for one in scored),
        kept_rate=round(sum(one.kept for one in scored) / written, 4) if written else 0.0,
        parse_rate=_share(one.parses for one in scored),
        empty_rate=_share(not one.filled.text.strip() for one in scored),
        failures=dict(sorted(Counter(cause for one in scored if (cause := one.failure)).items())),
        tokens=tokens,
        forwards=forwards,
        extra=round(extra, 2),
        tpf=round(tokens / (forwards + extra), 3) if forwards else 0.0,
        tok_s=round(tokens / seconds, 1) if seconds else 0.0,
        prompt_tokens=sum(f.prompt_tokens for f in filled),
        prompt_passes=sum(f.prompt_passes for f in filled),
        ms_p50=round(percentile([f.total_ms for f in filled], 0.5), 1),
        ms_p95=round(percentile([f.total_ms for f in filled], 0.95), 1),
        ms_total=round(sum(f.total_ms for f in filled), 1),
        ms_prompt_p50=round(percentile([f.prompt_ms for f in filled], 0.5), 1),
        ms_decode_p50=round(percentile([f.decode_ms for f in filled], 0.5), 1),
        same_text=_share(a.filled.text == b.filled.text for a, b in zip(scored, first, strict=True)),
        ended=dict(sorted(Counter(str(f.reason) for f in filled).items())),
    )


def _judge(task: Task, text: str) -> tuple[bool, bool | None]:
    """Whether the whole file parses, and whether its test passes."""
    whole = task.prefix + text + task.suffix
    sound = parses(task.language, whole)
    if not task.test:
        return sound, None
    return sound, sound and run_program(whole + task.test).passed


def _share(values: Any) -> float:
    numbers = list(values)
    return round(sum(numbers) / len(numbers), 4) if numbers else 0.0
