"""`remask bench pass`: how long one pass takes against what the machine allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from remask.engine.evaluation.bench_pass import PassReport, Runs
    from remask.engine.models.transformer import Transformer


@click.command(name="pass")
@click.option("--model", type=click.Path(path_type=Path), help="A checkpoint folder instead of the default model.")
@click.option("--shape", help="Random weights of a published shape instead, for example qwen2.5-1.5b.")
@click.option("--device", default="auto", help="auto, cpu or cuda.")
@click.option("--dtype", default="auto", help="auto, int8, fp8, float32 or bfloat16.")
@click.option("--context", "contexts", multiple=True, type=click.IntRange(0, 131072), help="Tokens before the pass.")
@click.option("--tokens", "blocks", multiple=True, type=click.IntRange(1, 1024), help="Tokens of the pass.")
@click.option("--repeats", default=20, type=click.IntRange(1, 1000), help="Rounds that the medians are of.")
@click.option("--baseline", is_flag=True, help="Time the plain pass beside it.")
@click.option("--processor-time", is_flag=True, help="Count this process's own time: for one thread on a busy machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bench_pass_command(
    model: Path | None,
    shape: str | None,
    device: str,
    dtype: str,
    contexts: tuple[int, ...],
    blocks: tuple[int, ...],
    repeats: int,
    baseline: bool,
    processor_time: bool,
    as_json: bool,
) -> None:
    """Time one pass by block size and context length."""
    from remask.engine.evaluation.bench_pass import BLOCKS, CONTEXTS, bench_pass
    from remask.engine.evaluation.report import progress

    name, transformer, plain = _what(model, shape, device, dtype, baseline)
    contexts, blocks = contexts or CONTEXTS, blocks or BLOCKS
    with progress("timing", len(contexts) * (repeats + 3), quiet=as_json) as advance:
        report = bench_pass(
            name,
            transformer,
            plain,
            contexts=contexts,
            blocks=blocks,
            repeats=repeats,
            random_weights=shape is not None,
            processor_time=processor_time,
            advance=advance,
        )
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        _table(report)


@click.command(name="kernels")
@click.option("--device", default="cuda", help="The card.")
def bench_kernels_command(device: str) -> None:
    """Check each GPU kernel against float64 and time it beside torch; prints a line of JSON for each."""
    from remask.engine.evaluation.bench_kernels import bench_kernels
    from remask.engine.models.model import choose_device

    for row in bench_kernels(choose_device(device)):
        click.echo(json.dumps(row))


def _what(
    model: Path | None, shape: str | None, device: str, dtype: str, baseline: bool
) -> tuple[str, Transformer, Runs | None]:
    """The name, the transformer to be timed and the plain one of the same sizes."""
    import torch

    from remask.engine.evaluation.plain_pass import PlainTransformer
    from remask.engine.evaluation.shapes import random_transformer, random_weights
    from remask.engine.models.checkpoint import read_weights
    from remask.engine.models.choice import find_model
    from remask.engine.models.matrix import EIGHT_BITS
    from remask.engine.models.model import Model, choose_device, choose_dtype
    from remask.engine.models.processor import set_threads

    where = choose_device(device)
    if shape is not None:
        set_threads()
        transformer = random_transformer(shape, choose_dtype(dtype, where), where)
        name = shape
    else:
        loaded = Model.load(model, device=device, dtype=dtype)
        name, transformer = loaded.spec.name, loaded.transformer
    if not baseline:
        return name, transformer, None
    held = torch.bfloat16 if transformer.dtype in EIGHT_BITS else transformer.dtype
    weights = (
        read_weights(find_model(model), transformer.shape, dtype=held, device=where)
        if shape is None
        else random_weights(shape, held, where)
    )
    return name, transformer, PlainTransformer(transformer.shape, weights)


def _table(report: PassReport) -> None:
    from rich.console import Console

    from remask.engine.evaluation.report import plain_grid

    console = Console(highlight=False)
    what = "random weights" if report.random_weights else "its own weights"
    title = f"{report.model} ({what}), {report.dtype} on {report.device}, {report.threads} threads"
    floors = ("floor: bytes", "floor: ops")
    grid = plain_grid(title, "context", "tokens", "ms", *floors, "ratio", "to one token", "plain ms", "faster")
    for row in report.rows:
        plain = ("", "") if row.baseline_ms is None else (f"{row.baseline_ms:.1f}", f"{row.speedup:.2f}")
        grid.add_row(
            str(row.context),
            str(row.tokens),
            f"{row.ms:.2f}",
            f"{row.floor_bytes_ms:.2f}",
            f"{row.floor_operations_ms:.2f}",
            f"{row.ratio:.2f}",
            f"{row.to_one:.2f}",
            *plain,
        )
    console.print(grid)
    console.print(
        f"Measured here: {report.bandwidth_gb_s} GB/s read, {report.gflop_s} GFLOP/s in bfloat16; "
        f"load {report.load_average}."
    )
