"""`remask bench keystroke`: a keystroke with a warm session, with one from a lower tier, and with none."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from remask.cli.options import engine_options, load_engine, refuse_files_with


@click.command()
@click.option("--context", "contexts", multiple=True, type=click.IntRange(1), help="Tokens of prompt and text.")
@click.option("--keystrokes", default=12, type=click.IntRange(1, 1000), help="Characters to type at each context.")
@click.option("--colds", default=3, type=click.IntRange(1, 100), help="Cold readings of each context.")
@click.option("--max-tokens", default=16, type=click.IntRange(1, 1024), help="Tokens a completion gets at most.")
@click.option("--shape", help="Random weights of a published shape instead, for example smollm2-135m.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def keystroke(
    contexts: tuple[int, ...],
    keystrokes: int,
    colds: int,
    max_tokens: int,
    shape: str | None,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> None:
    """Time a keystroke at long contexts: warm, from host memory, reopened from disk, and cold."""
    from remask.engine.evaluation.keystroke import CONTEXTS, bench_keystroke, random_model, steps
    from remask.engine.evaluation.report import progress
    from remask.engine.evaluation.tables import keystroke_table

    if shape:
        refuse_files_with("--shape", **{"--model": model, "--adapter": adapter})
    contexts = contexts or CONTEXTS
    loaded = random_model(shape, device, dtype) if shape else load_engine(model, adapter, device, dtype, False).model
    with (
        tempfile.TemporaryDirectory(prefix="remask-") as folder,
        progress("typing", steps(contexts, keystrokes, colds), quiet=as_json) as advance,
    ):
        report = bench_keystroke(
            loaded,
            Path(folder),
            contexts=contexts,
            keys=keystrokes,
            colds=colds,
            max_tokens=max_tokens,
            random_weights=shape is not None,
            advance=advance,
        )
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        keystroke_table(report)
