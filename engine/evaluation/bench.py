"""Decoding speed: policies against one token a pass, with the same weights and prompts, interleaved in one run.

Measures decoding alone: prompts are read before the clock starts, and nothing is judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import resources
from statistics import median
from typing import Any

import torch

from remask.contract.errors import InputError
from remask.contract.messages import CompletionRequest
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import POLICIES, policy_named
from remask.engine.decode.policy import Policy
from remask.engine.decode.request import Budget, Request
from remask.engine.ends import stop_rules
from remask.engine.evaluation.tasks import Task
from remask.engine.models.model import Model
from remask.engine.models.passes import Pass
from remask.engine.models.spec import ModelSpec
from remask.engine.prompt import Prompt, build_prompt
from remask.engine.session import Session
from remask.grammars import grammar_for_language

BASELINE = "autoregressive"
SLOWEST_UNVERIFIED = "one_by_one"  # the baseline of checkpoints that cannot be read causally
SOURCES = ("contract", "engine.decode", "engine.models", "grammars", "lsp_server")


@dataclass(frozen=True, slots=True)
class Hole:
    """A place in a source file to be filled."""

    name: str
    prefix: str
    suffix: str
    language: str = "python"

    @classmethod
    def of(cls, task: Task) -> Hole:
        """The hole of an evaluation task."""
        return cls(task.name, task.prefix, task.suffix, task.language)


@dataclass(frozen=True, slots=True)
class Row:
    """One policy's figures. tok_s: tokens a second of decoding. ms_p50: median a hole.

    extra: what drafting cost beside whole passes, in one-token passes; tpf: tokens / (forwards + extra).
    """

    policy: str
    tokens: int
    forwards: int
    tpf: float
    tok_s: float
    ms_p50: float
    same_text: float
    extra: float


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """How many of a language's prompts a policy gave the baseline's text, token for token."""

    language: str
    policy: str
    prompts: int
    same_text: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a policy first left the baseline: both tokens' texts and how far apart their log-probabilities are.

    best_two: the causal reading has no better token than these two; behind: what the less likely of them lacks to the
    best token of all. Where rounding decided between some tokens that are nearly as likely, that is little. exact: the
    policy promises the baseline's text.
    """

    hole: str
    language: str
    policy: str
    exact: bool
    position: int
    baseline: str
    other: str
    margin: float
    best_two: bool
    behind: float


@dataclass(slots=True)
class Report:
    """What `remask bench decode` prints. `same_text` and `speedup` are the first compared policy's."""

    model: str
    dtype: str
    device: str
    threads: int
    prompts: int
    processor_time: bool = False
    rows: list[Row] = field(default_factory=list)
    languages: list[LanguageRow] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        base, first = self.rows[0], self.rows[min(1, len(self.rows) - 1)]
        speedup = round(first.tok_s / base.tok_s, 3) if base.tok_s else 0.0
        return asdict(self) | {"same_text": first.same_text, "speedup": speedup}


@dataclass(slots=True)
class _Run:
    """What one policy did to one hole."""

    text: str
    tokens: list[int]
    forwards: int
    extra: float
    seconds: float


def source_files() -> list[tuple[str, str]]:
    """Names and texts of Remask's own sources: always there, never trained on."""
    return sorted(
        (
            (f"{package}/{file.name}", file.read_text("utf-8"))
            for package in SOURCES
            for file in resources.files(f"remask.{package}").iterdir()
            if file.name.endswith(".py")
        ),
        key=lambda named: named[0],
    )


def sample_holes(count: int) -> list[Hole]:
    """`count` holes at line starts and inside lines of Remask's own sources."""
    candidates = [hole for name, text in source_files() for hole in _holes(name, text)]
    step = max(1, len(candidates) // count)
    return candidates[::step][:count]


def bench_decode(
    model: Model,
    holes: list[Hole],
    policies: list[str],
    max_tokens: int,
    advance: Callable[[], None] = lambda: None,
    *,
    processor_time: bool = False,
) -> Report:
    """Decode every hole by the baseline and each policy in turn. Raises InputError for an unknown policy.

    `processor_time` counts what this process itself uses (see `bench_pass`).
    """
    clock = time.process_time if processor_time else time.perf_counter
    baseline = BASELINE if model.spec.verifies else SLOWEST_UNVERIFIED
    named = [policy_named(p, model.spec) for p in dict.fromkeys([baseline, *policies])]
    transformer = model.transformer
    report = Report(
        model=model.spec.name,
        dtype=str(transformer.dtype).removeprefix("torch."),
        device=str(transformer.device),
        threads=torch.get_num_threads(),
        prompts=len(holes),
        processor_time=processor_time,
    )
    runs: dict[str, list[_Run]] = {p.name: [] for p in named}
    session = Session(transformer.new_cache())
    decoders = {p.name: Decoder(model) for p in named}  # one each: a planner learns from its own rounds
    for policy in named:  # the first passes of a process are slow
        _decode(decoders[policy.name], model, session, holes[0], policy, max_tokens, clock)
    for hole in holes:
        for policy in named:
            run = _decode(decoders[policy.name], model, session, hole, policy, max_tokens, clock)
            runs[policy.name].append(run)
        for policy in named[1:] if model.spec.verifies else []:
            pair = runs[baseline][-1], runs[policy.name][-1]
            if pair[0].tokens != pair[1].tokens:
                report.differences.append(_difference(model, session, hole, policy, *pair))
        advance()
    report.rows = [_row(p.name, runs[p.name], runs[baseline]) for p in named]
    report.languages = [row for p in named[1:] for row in _by_language(p.name, holes, runs[p.name], runs[baseline])]
    return report


def usual_policies(spec: ModelSpec) -> list[str]:
    """The checkpoint's default; before it, where that searches, the policy that writes its first texts."""
    return ["auto", "default"] if policy_named("default", spec).branches > 1 else ["default"]


def all_policies(spec: ModelSpec) -> list[str]:
    """The names of all policies that the checkpoint can decode by."""
    names = []
    for name in POLICIES:
        with suppress(InputError):
            names.append(policy_named(name, spec).name)
    return names


def _holes(name: str, text: str) -> list[Hole]:
    """After the indentation of every fifth line of code, and in the middle of every fifth other one."""
    holes, offset = [], 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        body = line.strip()
        if body and not body.startswith(("#", '"""')) and number % 5 in (0, 2):
            indent = len(line) - len(line.lstrip())
            cut = offset + indent + (len(body) // 2 if number % 5 else 0)
            holes.append(Hole(f"{name}:{number + 1}", text[:cut], text[offset + len(line) - 1 :]))
        offset += len(line)
    return holes


def _decode(
    decoder: Decoder,
    model: Model,
    session: Session,
    hole: Hole,
    policy: Policy,
    max_tokens: int,
    clock: Callable[[], float],
) -> _Run:
    asked = CompletionRequest(document=hole.name, language=hole.language, prefix=hole.prefix, suffix=hole.suffix)
    rules = stop_rules(grammar_for_language(hole.language), asked, model.spec)
    request = Request(session, policy, Budget(max_tokens))
    before = decoder.prepare(request, build_prompt(model, hole.prefix, hole.suffix, hole.language)).passes
    started = clock()
    text, _ = decoder.decode(request, rules)
    return _Run(text, request.written, request.forwards - before, request.extra, clock() - started)


def _difference(model: Model, session: Session, hole: Hole, policy: Policy, base: _Run, other: _Run) -> Difference:
    """Score both tokens at the first place where the runs part, by one causal pass over what they share."""
    end = model.spec.end_ids[0]
    shared = next(
        (i for i, (a, b) in enumerate(zip(base.tokens, other.tokens, strict=False)) if a != b),
        min(len(base.tokens), len(other.tokens)),
    )
    first, second = (run.tokens[shared] if shared < len(run.tokens) else end for run in (base, other))
    prompt = build_prompt(model, hole.prefix, hole.suffix, hole.language)
    request = Request(session, policy_named(BASELINE, model.spec), Budget(1))
    Decoder(model).prepare(request, Prompt(prompt.tokens + base.tokens[:shared], prompt.after))
    step = Pass.causal(request.pending, session.cache.length, model.transformer.device)
    logits = model.transformer.logits(model.transformer.forward(step, session.cache)[-1:])[0].clone()
    logits[list(model.spec.never)] = -torch.inf  # as a reader scores them
    scores = logits.log_softmax(-1)
    return Difference(
        hole=hole.name,
        language=hole.language,
        policy=policy.name,
        exact=policy.exact,
        position=shared,
        baseline=model.decode([first]),
        other=model.decode([second]),
        margin=round(abs(float(scores[first] - scores[second])), 4),
        best_two={first, second} == set(scores.topk(2).indices.tolist()),
        behind=round(float(scores.max() - min(scores[first], scores[second])), 4),
    )


def _by_language(policy: str, holes: list[Hole], runs: list[_Run], baseline: list[_Run]) -> list[LanguageRow]:
    same = [run.tokens == base.tokens for run, base in zip(runs, baseline, strict=True)]
    rows = []
    for language in sorted({hole.language for hole in holes}):
        hits = [hit for hit, hole in zip(same, holes, strict=True) if hole.language == language]
        rows.append(LanguageRow(language, policy, len(hits), sum(hits)))
    return rows


def _row(policy: str, runs: list[_Run], baseline: list[_Run]) -> Row:
    tokens = sum(len(r.tokens) for r in runs)
    forwards = sum(r.forwards for r in runs)
    extra, seconds = sum(r.extra for r in runs), sum(r.seconds for r in runs)
    same = sum(r.text == b.text for r, b in zip(runs, baseline, strict=True))
    return Row(
        policy=policy,
        tokens=tokens,
        forwards=forwards,
        tpf=round(tokens / (forwards + extra), 3),
        tok_s=round(tokens / seconds, 1),
        ms_p50=round(median(r.seconds for r in runs) * 1000, 1),
        same_text=round(same / len(runs), 4),
        extra=round(extra, 2),
    )
