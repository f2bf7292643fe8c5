"""`remask bench gpu`: every table that a card gives, by one command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from remask.cli.options import FiniteRange
from remask.contract.errors import StorageError


@click.command(name="gpu")
@click.option("--device", default="cuda", help="The card.")
@click.option("--shape", "shapes", multiple=True, help="Random weights of a published shape, for example qwen2.5-7b.")
@click.option("--context", "contexts", multiple=True, type=click.IntRange(0, 131072), help="Tokens before the pass.")
@click.option("--tokens", "tokens", multiple=True, type=click.IntRange(1, 1024), help="Tokens of the pass.")
@click.option("--repeats", type=click.IntRange(1, 1000), help="Rounds that the medians are of.")
@click.option("--minutes", default=12.0, type=FiniteRange(0.1, 600), help="Begin nothing after that.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A file for the lines; else stdout.")
@click.option("--dry-run", is_flag=True, help="Small sizes on the processor: whether the bench works at all.")
def bench_gpu_command(
    device: str,
    shapes: tuple[str, ...],
    contexts: tuple[int, ...],
    tokens: tuple[int, ...],
    repeats: int | None,
    minutes: float,
    out: Path | None,
    dry_run: bool,
) -> None:
    """Check and time kernels and passes on a card; a line of JSON for each, written as soon as it is known."""
    from dataclasses import replace

    from remask.engine.evaluation.bench_gpu import DRY, Plan, bench_gpu
    from remask.engine.models.model import choose_device

    plan = DRY if dry_run else Plan()
    plan = replace(
        plan,
        shapes=shapes or plan.shapes,
        contexts=contexts or plan.contexts,
        tokens=tokens or plan.tokens,
        repeats=repeats or plan.repeats,
    )
    where = choose_device("cpu" if dry_run else device)
    with _lines(out) as file:
        for line in bench_gpu(where, plan, minutes * 60):
            print(json.dumps(line), file=file, flush=True)


@contextmanager
def _lines(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    try:
        file = out.open("w", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{out} cannot be written: {error.strerror}.") from None
    with file:
        yield file
