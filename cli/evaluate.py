"""`remask eval`: quality of completions, as figures."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remask.cli.eval_judges import faults, syntax
from remask.cli.options import engine_options, load_engine

if TYPE_CHECKING:
    from remask.engine.api import Engine
    from remask.engine.evaluation.fill import Filler
    from remask.engine.evaluation.infilling import Report
    from remask.engine.evaluation.tasks import Split, Task

INTERRUPTED = 130  # the shell's code for Ctrl-C


@click.group(name="eval")
def evaluate() -> None:
    """Measure quality on evaluation data."""


evaluate.add_command(syntax)
evaluate.add_command(faults)


@evaluate.command()
@click.option("--data", required=True, type=click.Path(path_type=Path), help="The folder with the evaluation data.")
@click.option("--split", "split_name", default="single-line", help="Which tasks (an unknown one lists them).")
@click.option("--limit", type=click.IntRange(min=1), help="Tasks to do, drawn at random; all where left out.")
@click.option("--seed", default=0, help="What the tasks are drawn by.")
@click.option("--policy", "policies", multiple=True, default=("default",), help="May be given several times.")
@click.option("--max-tokens", type=click.IntRange(1, 1024), help="Tokens a task gets at most; the split's own number.")
@click.option("--gate", is_flag=True, help="Judge what the editor would show instead of the model's own text.")
@click.option("--no-context", is_flag=True, help="Show nothing of other files (the split cross-file).")
@click.option("--samples", type=click.Path(path_type=Path), help="Write every text to this file, as JSON lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def infilling(
    data: Path,
    split_name: str,
    limit: int | None,
    seed: int,
    policies: tuple[str, ...],
    max_tokens: int | None,
    gate: bool,
    no_context: bool,
    samples: Path | None,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> int:
    """Fill holes whose true text is known, and run their tests where they have some."""
    from remask.engine.decode.policies import policy_named
    from remask.engine.evaluation.infilling import Report, describe
    from remask.engine.evaluation.infilling import evaluate as run
    from remask.engine.evaluation.report import progress
    from remask.engine.evaluation.sandbox import isolation
    from remask.engine.evaluation.tables import infilling_table
    from remask.engine.evaluation.tasks import split_named

    split = split_named(split_name)
    tasks = _tasks(data, split, limit, seed, no_context)
    held_by = isolation() if tasks[0].test else ""
    engine = load_engine(model, adapter, device, dtype, cache=False)
    chosen = list({p.name: p for p in (policy_named(name, engine.model.spec) for name in policies)}.values())
    filler = _filler(engine, split, max_tokens, gate)
    report = Report(
        split=split.name,
        seed=seed,
        tasks=len(tasks),
        gate=gate,
        context=any(task.context for task in tasks),
        isolation=held_by,
        **describe(engine.model),
    )
    with progress(split.name, len(tasks), quiet=as_json) as advance:
        report = run(filler, tasks, chosen, report, advance)
    _print(report, as_json, samples, infilling_table)
    return INTERRUPTED if report.interrupted else 0


@evaluate.command()
@click.option("--data", required=True, type=click.Path(path_type=Path), help="A folder made by 'remask train corpus'.")
@click.option("--split", default="validation", help="Which rows of the corpus.")
@click.option("--limit", default=200, type=click.IntRange(min=1), help="Examples to read, drawn at random.")
@click.option("--seed", default=0, help="What the examples and the masks are drawn by.")
@click.option("--canvas", type=click.IntRange(1, 256), help="Positions of a canvas; the model's block where left out.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def tokens(
    data: Path,
    split: str,
    limit: int,
    seed: int,
    canvas: int | None,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> int:
    """Compare canvases with the truth and with the causal reading, position by position."""
    from remask.engine.evaluation.infilling import describe
    from remask.engine.evaluation.report import progress
    from remask.engine.evaluation.tables import tokens_table
    from remask.engine.evaluation.tasks import choose
    from remask.engine.evaluation.tokens import TokenReport, measure, read_examples
    from remask.engine.models.choice import find_model
    from remask.engine.training.corpus.store import load_corpus

    tokenizer = find_model(model) / "tokenizer.json"
    corpus = load_corpus(data, hashlib.sha256(tokenizer.read_bytes()).hexdigest() if tokenizer.is_file() else None)
    examples = choose(read_examples(corpus, split), limit, seed)
    loaded = load_engine(model, adapter, device, dtype, cache=False).model
    report = TokenReport(split=split, seed=seed, canvas=canvas or loaded.spec.block_size, **describe(loaded))
    with progress(split, len(examples), quiet=as_json) as advance:
        report = measure(loaded, examples, report, advance)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        tokens_table(report)
    return INTERRUPTED if report.interrupted else 0


def _tasks(data: Path, split: Split, limit: int | None, seed: int, no_context: bool) -> list[Task]:
    from remask.engine.evaluation.heldout import make_tasks
    from remask.engine.evaluation.tasks import choose, read_tasks

    if split.file:
        return choose(read_tasks(data, split), limit, seed)
    return make_tasks(data, split, limit, seed, context=not no_context)


def _filler(engine: Engine, split: Split, max_tokens: int | None, gate: bool) -> Filler:
    from remask.engine.evaluation.fill import AsShown, OwnText

    room = max_tokens or split.max_tokens
    return AsShown(engine, room) if gate else OwnText(engine.model, room, split.end, lines=split.lines)


def _print(report: Report, as_json: bool, samples: Path | None, table: Any) -> None:
    from remask.engine.evaluation.tasks import write_lines

    if samples is not None:
        write_lines(samples, report.samples())
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        table(report)
