"""`remask eval syntax` and `remask eval faults`: what the judges find, mend and cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remask.cli.options import FiniteRange, engine_options, load_engine

if TYPE_CHECKING:
    from remask.engine.evaluation.tasks import Task

INTERRUPTED = 130  # the shell's code for Ctrl-C
F = TypeVar("F", bound=Callable[..., Any])


def task_options(command: F) -> F:
    """`--data`, `--language`, `--limit` and `--seed`."""
    for option in (
        click.option("--seed", default=0, help="What the tasks are drawn by."),
        click.option("--limit", default=200, type=click.IntRange(min=1), help="Tasks to do, drawn at random."),
        click.option("--language", "languages", multiple=True, help="A language of --data; all where none is named."),
        click.option(
            "--data",
            required=True,
            type=click.Path(path_type=Path),
            help="The evaluation data, a corpus, or any folder with source files.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@task_options
@click.option("--split", "split_name", default="line-end", help="Which tasks (an unknown one lists them).")
@click.option(
    "--policy", "policies", multiple=True, default=("default", "parallel", "parallel:remask=off"), help="Compared."
)
@click.option("--max-tokens", default=32, type=click.IntRange(1, 1024), help="Tokens a task gets at most.")
@click.option("--processor-time", is_flag=True, help="Count this process's own time: for one thread on a busy machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def syntax(
    data: Path,
    languages: tuple[str, ...],
    limit: int,
    seed: int,
    split_name: str,
    policies: tuple[str, ...],
    max_tokens: int,
    processor_time: bool,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> int:
    """Count the syntax errors that completions add, before and after the gate, and time the judges."""
    from remask.engine.decode.policies import policy_named
    from remask.engine.evaluation.infilling import describe
    from remask.engine.evaluation.report import progress
    from remask.engine.evaluation.sandbox import isolation
    from remask.engine.evaluation.syntax import Report, measure
    from remask.engine.evaluation.tables import syntax_table
    from remask.engine.evaluation.watched import WatchedEngine

    tasks = _tasks(data, split_name, limit, seed, languages)
    held_by = isolation() if tasks[0].test else ""
    loaded = load_engine(model, adapter, device, dtype, cache=False)
    chosen = list({p.name: p for p in (policy_named(name, loaded.model.spec) for name in policies)}.values())
    engine = WatchedEngine(loaded, time.process_time if processor_time else time.perf_counter)
    report = Report(split=split_name, seed=seed, tasks=len(tasks), isolation=held_by, **describe(loaded.model))
    with progress(split_name, len(tasks), quiet=as_json) as advance:
        report = measure(engine, tasks, chosen, max_tokens, report, advance)
    engine.close()
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        syntax_table(report)
    return INTERRUPTED if report.interrupted else 0


@click.command()
@task_options
@click.option("--block", default=32, type=click.IntRange(8, 256), help="Tokens of a body that are denoised.")
@click.option("--masked", default=0.25, type=FiniteRange(0, 1), help="Share of the other tokens that are masked.")
@click.option("--policy", "policies", multiple=True, default=("parallel",), help="How blocks are denoised.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file for results as they come; the same command goes on from it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def faults(
    data: Path,
    languages: tuple[str, ...],
    limit: int,
    seed: int,
    block: int,
    masked: float,
    policies: tuple[str, ...],
    keep: Path | None,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> int:
    """Break one token of true function bodies and see what the judge and the model make of it."""
    from itertools import islice

    from remask.contract.errors import InputError
    from remask.engine.decode.policies import policy_named
    from remask.engine.evaluation.faults import LEAST, Report, inject, measure
    from remask.engine.evaluation.heldout import make_tasks
    from remask.engine.evaluation.infilling import describe
    from remask.engine.evaluation.kept import Kept
    from remask.engine.evaluation.report import progress
    from remask.engine.evaluation.tables import faults_table
    from remask.engine.evaluation.tasks import made_split

    tasks = make_tasks(data, made_split("body"), 4 * limit, seed, context=False, languages=languages)
    engine = load_engine(model, adapter, device, dtype, cache=False)
    chosen = list({p.name: p for p in (policy_named(name, engine.model.spec) for name in policies)}.values())
    if verifying := [policy.name for policy in chosen if policy.verifies]:
        raise InputError(f"The policy {verifying[0]!r} verifies, so nothing that it commits is judged.")
    broken = list(islice(inject(engine.model, tasks, block, masked, seed), limit))
    if not broken:
        raise InputError(f"No function body in {data} has {LEAST} tokens, one of which breaks it in another's place.")
    report = Report(seed=seed, block=block, masked=masked, faults=len(broken), **describe(engine.model))
    how = {"faults": engine.model.fingerprint, "seed": seed, "block": block, "masked": masked}
    kept = None if keep is None else Kept(keep, how)
    with progress("denoising", len(broken), quiet=as_json) as advance:
        report = measure(engine, broken, chosen, report, advance, kept)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        faults_table(report)
    return INTERRUPTED if report.interrupted else 0


def _tasks(data: Path, split_name: str, limit: int, seed: int, languages: tuple[str, ...]) -> list[Task]:
    from remask.engine.evaluation.heldout import make_tasks
    from remask.engine.evaluation.tasks import choose, read_tasks, split_named

    split = split_named(split_name)
    if split.file:
        return choose(read_tasks(data, split), limit, seed)
    return make_tasks(data, split, limit, seed, context=False, languages=languages)
