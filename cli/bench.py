"""`remask bench`: speed, as ratios within one run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remask.cli.bench_pass import bench_kernels_command, bench_pass_command
from remask.cli.bench_server import server
from remask.cli.options import engine_options, load_engine


@click.group()
def bench() -> None:
    """Measure speed on this machine."""


bench.add_command(server)
bench.add_command(bench_pass_command)
bench.add_command(bench_kernels_command)


@bench.command()
@click.option("--prompts", default=16, type=click.IntRange(1, 1000), help="Holes to fill.")
@click.option("--max-tokens", default=32, type=click.IntRange(1, 1024), help="Tokens a hole gets at most.")
@click.option("--policy", "policies", multiple=True, default=("default",), help="Compared with one token a pass.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def decode(
    prompts: int,
    max_tokens: int,
    policies: tuple[str, ...],
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> None:
    """Compare policies with one token a pass."""
    from remask.engine.evaluation.bench import bench_decode, sample_holes
    from remask.engine.evaluation.report import progress, table

    engine = load_engine(model, adapter, device, dtype, cache=False)
    holes = sample_holes(prompts)
    names = ", ".join(policies)
    click.echo(f"Decoding {len(holes)} holes, one token a pass and by {names}. This takes a minute or more.", err=True)
    with progress("decoding", len(holes), quiet=as_json) as advance:
        report = bench_decode(engine.model, holes, list(policies), max_tokens, advance)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        table(report)
