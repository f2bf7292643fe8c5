"""`remask bench decode`: policies against one token a pass, their speed and whether they write the same text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remask.cli.options import engine_options, load_engine
from remask.contract.errors import InputError

if TYPE_CHECKING:
    from remask.engine.evaluation.bench import Hole


@click.command()
@click.option("--prompts", default=16, type=click.IntRange(1, 1000), help="Holes to fill.")
@click.option("--max-tokens", default=32, type=click.IntRange(1, 1024), help="Tokens a hole gets at most.")
@click.option(
    "--policy", "policies", multiple=True, help="Compared with one token a pass; else the default (and auto)."
)
@click.option("--all", "every", is_flag=True, help="Compare all policies.")
@click.option("--data", type=click.Path(path_type=Path), help="Source files to cut holes out of; Remask's own if none.")
@click.option("--language", "languages", multiple=True, help="A language of --data; all where none is named.")
@click.option("--split", "split_name", help="The kind of holes in --data.  [default: line-end]")
@click.option("--seed", type=int, help="What the holes in --data are drawn by.  [default: 0]")
@click.option("--processor-time", is_flag=True, help="Count this process's own time: for one thread on a busy machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def decode(
    prompts: int,
    max_tokens: int,
    policies: tuple[str, ...],
    every: bool,
    data: Path | None,
    languages: tuple[str, ...],
    split_name: str | None,
    seed: int | None,
    processor_time: bool,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> None:
    """Compare policies with one token a pass."""
    from remask.engine.evaluation.bench import all_policies, bench_decode, sample_holes, usual_policies
    from remask.engine.evaluation.report import progress, table

    if data is None and (split_name or languages or seed is not None):
        raise InputError("--split, --language and --seed say which holes are cut out of --data. Name a folder with it.")
    holes = (
        sample_holes(prompts) if data is None else _holes(data, split_name or "line-end", prompts, seed or 0, languages)
    )
    engine = load_engine(model, adapter, device, dtype, cache=False)
    spec = engine.model.spec
    compared = all_policies(spec) if every else list(policies) or usual_policies(spec)
    names = ", ".join(compared)
    click.echo(f"Decoding {len(holes)} holes, one token a pass and by {names}. This takes a minute or so.", err=True)
    with progress("decoding", len(holes), quiet=as_json) as advance:
        report = bench_decode(engine.model, holes, compared, max_tokens, advance, processor_time=processor_time)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        table(report)


def _holes(data: Path, split_name: str, count: int, seed: int, languages: tuple[str, ...]) -> list[Hole]:
    from remask.engine.evaluation.bench import Hole
    from remask.engine.evaluation.heldout import make_tasks
    from remask.engine.evaluation.tasks import made_split

    return [Hole.of(task) for task in make_tasks(data, made_split(split_name), count, seed, languages=languages)]
