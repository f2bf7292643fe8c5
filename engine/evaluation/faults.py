"""Injected faults: true beginnings of function bodies, one committed token of each broken, and denoised further.

How often the judge finds the wrong token, how often the model writes the right one there, and what good tokens it
costs. Idea and the figures to compare with: one-token corruptions of 32-token blocks, where the error's token and the
two before it held the wrong one in 84 %, with 2.9 tokens flagged. Knows tasks, a model and the parser's judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from remask.engine.api import Engine
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.denoise import go_on
from remask.engine.decode.events import Remasked
from remask.engine.decode.guard import Guard
from remask.engine.decode.policy import Policy, Remask
from remask.engine.decode.regimes import reader_for
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.remask import Remasker
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.trace import Trace
from remask.engine.evaluation.kept import Kept
from remask.engine.evaluation.metrics import parses
from remask.engine.evaluation.tasks import Task, drawn
from remask.engine.judge.blame import Blame
from remask.engine.judge.names import NamesJudge
from remask.engine.models.model import Model
from remask.engine.prompt import build_prompt
from remask.engine.session import Session
from remask.grammars import grammar_for_language
from remask.grammars.source import encode

LEAST = 8  # tokens of a block: fewer say little
DRAWS = 40  # tokens that are tried in one block until the file breaks


@dataclass(frozen=True, slots=True)
class Fault:
    """A block of true tokens between `prefix` and `suffix`, token `at` of which shall be `wrong`.

    open: positions that are masked, never `at`.
    """

    task: Task
    tokens: tuple[int, ...]
    at: int
    wrong: int
    open: tuple[int, ...]

    def broken(self) -> list[int]:
        """The block with the wrong token."""
        return [*self.tokens[: self.at], self.wrong, *self.tokens[self.at + 1 :]]


@dataclass(frozen=True, slots=True)
class Row:
    """One policy and way to judge, over `n` blocks.

    sees: "beginning" (more may follow the canvas, as where the default model writes), "file" (the judge also reads
    what follows). broken: whether a token was.

    noticed: share in which anything committed was taken back; found: the wrong token was among it; found_first: it was
    in the first removal already; by: in a removal of that judge. flagged: tokens of a first removal, a mean. right: the
    true token stands there in the end; whole: the whole file parses. lost: good committed tokens that are others in the
    end, a mean; passes, too.
    """

    policy: str
    sees: str
    broken: bool
    n: int
    noticed: float
    found: float
    found_first: float
    by: dict[str, float]
    flagged: float
    right: float
    whole: float
    lost: float
    passes: float


@dataclass(slots=True)
class Report:
    """What `remask eval faults` prints.

    masked: share of the block's other positions that are open. visible: share of the broken files in which
    tree-sitter sees an error at all; indentation, for example, it does not judge.
    """

    model: str
    dtype: str
    device: str
    threads: int
    seed: int
    block: int
    masked: float
    faults: int
    visible: float = 0.0
    interrupted: bool = False
    languages: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Way:
    """How blocks are denoised; see `Row`."""

    policy: Policy
    closed: bool
    broken: bool


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one block."""

    flagged: int
    found: bool
    found_first: bool
    by: list[str]
    right: bool
    whole: bool
    lost: int
    passes: int


def inject(model: Model, tasks: Sequence[Task], block: int, masked: float, seed: int) -> Iterator[Fault]:
    """A fault for each task whose middle has one: a token of a block, put in another's place, that breaks the file.

    Blocks are counted from the middle's start, and one of them is drawn; what stands before it belongs to the prefix,
    what follows to the suffix.
    """
    for task in tasks:
        every = model.encode(task.truth)
        start = block * (drawn(seed, f"{task.name}:block") % max(1, len(every) // block))
        tokens = every[start : start + block]
        before, text = model.decode(every[:start]), model.decode(tokens)
        if len(tokens) < LEAST or not task.truth.startswith(before + text):
            continue
        rest = task.truth[len(before) + len(text) :]
        cut = replace(task, prefix=task.prefix + before, truth=text, suffix=rest + task.suffix)
        found = _wrong(model, cut, tokens, seed)
        if found is not None:
            yield Fault(cut, tuple(tokens), *found, _opened(task.name, len(tokens), found[0], masked, seed))


def measure(
    engine: Engine,
    faults: Sequence[Fault],
    policies: Sequence[Policy],
    report: Report,
    advance: Callable[[], None] = lambda: None,
    kept: Kept | None = None,
) -> Report:
    """Denoise every block, broken and as it was, in every way; Ctrl-C ends it with those that are done.

    What is `kept` already is not done again.
    """
    ways = [Way(policy, closed, broken) for policy in policies for closed in (False, True) for broken in (True, False)]
    outcomes: list[list[_Outcome]] = [[] for _ in ways]
    reader, session = reader_for(engine.model), Session(engine.model.transformer.new_cache())
    done = 0
    try:
        for fault in faults:
            for way, found in zip(ways, outcomes, strict=True):
                key = f"{fault.task.name} {fault.at} {way.policy.name} {way.closed} {way.broken}"
                values = kept.get(key) if kept is not None else None
                one = _denoised(engine, reader, session, fault, way) if values is None else _Outcome(**values)
                if kept is not None and values is None:
                    kept.add(key, asdict(one))
                found.append(one)
            done += 1
            advance()
    except KeyboardInterrupt:
        if done == 0:
            raise
        report.interrupted = True
    report.languages = dict(sorted(Counter(fault.task.language for fault in faults[:done]).items()))
    report.visible = round(sum(_visible(engine.model, fault) for fault in faults[:done]) / done, 4)
    report.rows = [_row(way, found[:done]) for way, found in zip(ways, outcomes, strict=True)]
    return report


def _opened(name: str, count: int, at: int, masked: float, seed: int) -> tuple[int, ...]:
    """That share of `count` positions, at least one and never `at`."""
    others = sorted((i for i in range(count) if i != at), key=lambda i: drawn(seed, f"{name}:{at}:{i}"))
    return tuple(sorted(others[: max(1, round(masked * len(others)))]))


def _wrong(model: Model, task: Task, tokens: list[int], seed: int) -> tuple[int, int] | None:
    """A position and a token of the same block that breaks a file which parses; None where no draw does."""
    for draw in range(DRAWS):
        number = drawn(seed, f"{task.name}:{draw}")
        at, other = number % len(tokens), tokens[number // len(tokens) % len(tokens)]
        text = model.decode([*tokens[:at], other, *tokens[at + 1 :]])
        if other != tokens[at] and not parses(task.language, task.prefix + text + task.suffix):
            return at, other
    return None


@torch.inference_mode()
def _denoised(engine: Engine, reader: Reader, session: Session, fault: Fault, way: Way) -> _Outcome:
    task, truth, model, trace = fault.task, list(fault.tokens), engine.model, Trace()
    remasker = _remasker(engine, task, way)
    request = Request(session, way.policy, Budget(len(truth) + 1), remasker=remasker, trace=trace)
    reader.prepare(request, build_prompt(model, task.prefix, task.suffix, task.language), lambda: False)
    start = torch.tensor(fault.broken() if way.broken else truth)
    canvas, known = Canvas(len(truth), model.spec.mask_id), torch.ones(len(truth), dtype=torch.bool)
    known[list(fault.open)] = False
    canvas.commit(start, torch.ones(len(truth)), known)
    written = go_on(reader, request, canvas, lambda run: False).filled()
    good = [i for i in range(len(truth)) if known[i] and not (way.broken and i == fault.at)]
    removals = [event for event in trace.events if isinstance(event, Remasked)]
    finding = [event for event in removals if fault.at in event.positions]
    return _Outcome(
        flagged=len(removals[0].positions) if removals else 0,
        found=bool(finding),
        found_first=bool(finding) and finding[0] is removals[0],
        by=sorted({event.judge for event in finding}),
        right=written[fault.at] == truth[fault.at],
        whole=parses(task.language, task.prefix + model.decode(written) + task.suffix),
        lost=sum(written[i] != truth[i] for i in good),
        passes=request.forwards,
    )


def _remasker(engine: Engine, task: Task, way: Way) -> Remasker:
    """The policy's judges; `closed` decides how far the parser reads, and no end is too early in a block."""
    grammar = grammar_for_language(task.language)
    assert grammar is not None, "the task was made with one"
    blame = guard = None
    if Remask.PARSER in way.policy.judges:
        blame = Blame(grammar, task.prefix, task.suffix, closed=way.closed)
        guard = Guard(blame, engine.model.decode)
    return engine.judges.joined(way.policy, blame, guard, NamesJudge(grammar, task.prefix, task.suffix))


def _visible(model: Model, fault: Fault) -> bool:
    task, grammar = fault.task, grammar_for_language(fault.task.language)
    text = task.prefix + model.decode(fault.broken()) + task.suffix
    return grammar is not None and bool(grammar.parse(encode(text)).root_node.has_error)


def _row(way: Way, outcomes: Sequence[_Outcome]) -> Row:
    judges = sorted({judge for one in outcomes for judge in one.by})
    return Row(
        policy=way.policy.name,
        sees="file" if way.closed else "beginning",
        broken=way.broken,
        n=len(outcomes),
        noticed=_mean([one.flagged > 0 for one in outcomes]),
        found=_mean([one.found for one in outcomes]),
        found_first=_mean([one.found_first for one in outcomes]),
        by={judge: _mean([judge in one.by for one in outcomes]) for judge in judges},
        flagged=_mean([one.flagged for one in outcomes if one.flagged]),
        right=_mean([one.right for one in outcomes]),
        whole=_mean([one.whole for one in outcomes]),
        lost=_mean([one.lost for one in outcomes]),
        passes=_mean([one.passes for one in outcomes]),
    )


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
