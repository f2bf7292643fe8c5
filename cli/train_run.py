"""`remask train run` and `remask train plot`: a training run, and its curves."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from remask.cli.options import FiniteRange
from remask.contract.errors import InputError

if TYPE_CHECKING:
    from remask.engine.training.trainer import Plan, Record

FOLDER = click.Path(path_type=Path)

# What glibc must be told before a process begins, or every step pays for its memory anew.
ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "20000000000",
    "MALLOC_TOP_PAD_": "268435456",
}


@click.command()
@click.option("--corpus", type=FOLDER, required=True, help="A corpus made by 'remask train corpus'.")
@click.option("--out", type=FOLDER, required=True, help="The run's folder; a run that is there goes on.")
@click.option("--model", type=FOLDER, help="The checkpoint to train instead of the default model.")
@click.option("--start", type=FOLDER, help="An adapter to train further, e.g. the default model's own folder.")
@click.option("--steps", default=0, type=click.IntRange(0), help="End after so many steps in all.")
@click.option("--minutes", default=0.0, type=FiniteRange(0), help="End after so many minutes from now.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change the recipe, e.g. rank=0 lr=2e-4.")
@click.option("--device", default="auto", help="auto, cpu or cuda.")
@click.option("--dtype", default="auto", help="auto, float32 or bfloat16.")
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Draw the loss curves into this file.")
def run(
    corpus: Path,
    out: Path,
    model: Path | None,
    start: Path | None,
    steps: int,
    minutes: float,
    settings: tuple[str, ...],
    device: str,
    dtype: str,
    picture: Path | None,
) -> None:
    """Train a checkpoint on a corpus: LoRA by default, all weights with --set rank=0."""
    keep_memory()
    from remask.engine.training.recipe import Recipe
    from remask.engine.training.run import RunRequest
    from remask.engine.training.trainer import Plan

    recipe = Recipe.from_dict(parsed(settings))
    plan = Plan(steps=steps, minutes=minutes)
    train(
        RunRequest(
            out=out, corpus=corpus, recipe=recipe, plan=plan, model=model, start=start, device=device, dtype=dtype
        )
    )
    if picture is not None:
        draw(out, picture)


@click.command()
@click.argument("run", type=FOLDER)
@click.argument("picture", type=click.Path(path_type=Path))
def plot(run: Path, picture: Path) -> None:
    """Draw the loss curves of RUN into PICTURE (.png, .svg or .pdf)."""
    draw(run, picture)


def train(request: Any) -> None:
    """Run to the end or to Ctrl-C, with a bar on stderr. Raises InputError, ModelError or StorageError."""
    from remask.engine.training.run import logged, open_run
    from remask.engine.training.trainer import stop_on_signals

    click.echo("Reading the checkpoint and the corpus ...", err=True)
    trainer = open_run(request)
    if trainer.step:
        click.echo(f"Going on from step {trainer.step}.", err=True)
    with logged(request.out, trainer.step) as write, stop_on_signals() as stopped, Bar(request.plan) as bar:

        def on_step(record: Record) -> None:
            write(record)
            bar.show(record)

        trainer.run(request.plan, on_step, stopped)
        interrupted = stopped()
    click.echo(f"Step {trainer.step}, {trainer.tokens:,} tokens, {trainer.seconds / 60:.1f} minutes: {request.out}.")
    if interrupted:
        click.echo("Interrupted; the same command goes on from here.", err=True)


class Bar:
    """Progress with losses, speed and the time left."""

    def __init__(self, plan: Plan) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._plan, self._task = plan, self._progress.add_task("first step", total=1.0, left="")
        self._first: Record | None = None
        self._held_out = ""

    def __enter__(self) -> Bar:
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bar as it is."""
        self._progress.stop()

    def show(self, record: Record) -> None:
        """Move to a record's step."""
        if record.kind != "train":
            self._held_out = f", held out {record.losses.total:.3f}"
            return
        first = self._first = self._first or record
        seconds = record.seconds - first.seconds
        speed = f", {(record.tokens - first.tokens) / seconds:.0f} tokens/s" if seconds else ""
        done = self._plan.progress(record.step, seconds)
        left = f"{seconds * (1 - done) / done / 60:.0f} min left" if done and seconds else ""
        text = f"step {record.step}, loss {record.losses.total:.3f}{self._held_out}{speed}"
        self._progress.update(self._task, completed=done, description=text, left=left)


def draw(run: Path, picture: Path) -> None:
    """Draw a run's curves and say where they are."""
    from remask.engine.training.plot import plot as plot_records
    from remask.engine.training.run import read_log

    plot_records(read_log(run), picture)
    click.echo(f"The loss curves are in {picture}.")


def parsed(settings: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` pairs as numbers. Raises InputError."""
    values: dict[str, Any] = {}
    for setting in settings:
        name, separator, value = setting.partition("=")
        try:
            values[name] = int(value) if value.lstrip("-").isdecimal() else float(value)
        except ValueError:
            separator = ""
        if not separator:
            raise InputError(f"{setting!r} is no setting.", advice="Write it as name=number, e.g. lr=2e-4.")
    return values


def keep_memory() -> None:
    """Begin again with an allocator that keeps its memory, where the process was started without (Linux)."""
    if sys.platform != "linux" or "MALLOC_TRIM_THRESHOLD_" in os.environ or "PYTEST_CURRENT_TEST" in os.environ:
        return
    os.execve(sys.executable, [sys.executable, "-P", "-m", "remask.cli", *sys.argv[1:]], os.environ | ALLOCATOR)  # noqa: S606
