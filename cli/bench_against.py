"""`remask bench against`: llama.cpp's server beside Remask, prompt by prompt in one run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remask.cli.options import engine_options, load_engine

if TYPE_CHECKING:
    from remask.engine.evaluation.against import SideReport


@click.command()
@click.argument("address", metavar="URL")
@click.option("--policy", "policies", multiple=True, default=("default",), help="Compared beside one token a pass.")
@click.option("--prompts", default=8, type=click.IntRange(1, 200), help="Prompts of each length.")
@click.option("--length", "lengths", multiple=True, type=click.IntRange(1, 32768), help="Tokens of a prompt.")
@click.option("--max-tokens", default=64, type=click.IntRange(2, 1024), help="Tokens written behind each.")
@click.option("--server-pid", type=int, help="Count processor time, also that process's: for a busy machine (Linux).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def against(
    address: str,
    policies: tuple[str, ...],
    prompts: int,
    lengths: tuple[int, ...],
    max_tokens: int,
    server_pid: int | None,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> None:
    """Compare with a llama.cpp server at URL that runs the same checkpoint on as many threads."""
    from remask.engine.evaluation.against import LENGTHS, Server, bench_against, processor_clock
    from remask.engine.evaluation.report import progress

    clocks = (time.perf_counter,) * 2 if server_pid is None else (time.process_time, processor_clock(server_pid))
    server = Server(address, clocks[1])
    engine = load_engine(model, adapter, device, dtype, cache=False)
    lengths = lengths or LENGTHS
    with progress("writing", len(lengths) * (prompts + 1), quiet=as_json) as advance:
        report = bench_against(
            engine.model,
            server,
            policies,
            lengths=lengths,
            prompts=prompts,
            max_tokens=max_tokens,
            clock=clocks[0],
            advance=advance,
        )
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        _table(report)


def _table(report: SideReport) -> None:
    from rich.console import Console

    from remask.engine.evaluation.report import plain_grid

    heads = ("prompt", "who", "tokens", "ms to first", "tokens/s", "ms/token", "same first", "times")
    title = f"{report.model}, {report.dtype}, {report.threads} threads, beside {report.server}"
    title += ", processor time" if report.processor_time else ""
    grid = plain_grid(title, *heads)
    for row in report.rows:
        grid.add_row(
            str(row.length),
            row.side,
            str(row.tokens),
            f"{row.first_ms:.0f}",
            f"{row.tok_s:.1f}",
            f"{row.ms_per_token:.2f}",
            f"{row.agreed:.0%}",
            f"{row.ratio:.2f}",
        )
    Console(highlight=False).print(grid)
