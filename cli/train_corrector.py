"""`remask train corrector`: the head that says how likely a written token is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from remask.cli.options import FiniteRange
from remask.cli.train_run import keep_memory
from remask.contract.errors import InputError

FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--corpus", type=FOLDER, required=True, help="A corpus made by 'remask train corpus'.")
@click.option("--out", type=FOLDER, required=True, help="A .safetensors file, or a folder for corrector.safetensors.")
@click.option("--model", type=FOLDER, help="The checkpoint that will be corrected instead of the default model.")
@click.option("--adapter", type=FOLDER, help="An adapter that will be merged into it.")
@click.option("--run", type=FOLDER, help="A training run on it, not exported yet: to see what a head would give.")
@click.option("--minutes", default=0.0, type=FiniteRange(0), help="How long it may take.")
@click.option("--steps", default=0, type=click.IntRange(0), help="Batches of drafts to learn from (repeatable).")
@click.option("--seed", default=0, type=click.IntRange(0), help="Decides which drafts are made, and in which order.")
@click.option("--taps", default="", help="Layers that are read, from 0, as 9,19,29; by default spread over the depth.")
@click.option("--held-out", default=40, type=click.IntRange(2), help="Batches of held-out drafts it is measured on.")
@click.option("--device", default="auto", help="auto, cpu or cuda.")
@click.option("--dtype", default="auto", help="auto, float32 or bfloat16.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def corrector(
    corpus: Path,
    out: Path,
    model: Path | None,
    adapter: Path | None,
    run: Path | None,
    minutes: float,
    steps: int,
    seed: int,
    taps: str,
    held_out: int,
    device: str,
    dtype: str,
    as_json: bool,
) -> None:
    """Train the corrector head on drafts that the model itself got wrong."""
    layers = _layers(taps)
    keep_memory()
    from remask.engine.training.corrector import CorrectorPlan
    from remask.engine.training.corrector_run import CorrectorRequest, make_corrector
    from remask.engine.training.drafts import DraftOptions

    request = CorrectorRequest(
        corpus=corpus,
        out=out,
        plan=CorrectorPlan(minutes=minutes, steps=steps, seed=seed, held_out=held_out),
        model=model,
        adapter=adapter,
        run=run,
        taps=layers,
        drafts=DraftOptions(seed=seed),
        device=device,
        dtype=dtype,
    )
    with Stages() as stages:
        path, made = make_corrector(request, stages.show)
    facts = {**made.facts, "threshold": made.threshold, "strict": made.strict, "taps": made.taps, "base": made.base}
    click.echo(json.dumps({"file": str(path), "bytes": path.stat().st_size, **facts}) if as_json else summary(facts))
    if not as_json:
        click.echo(f"The head is in {path} ({path.stat().st_size / 1e6:.2f} MB).")


def summary(facts: dict[str, Any]) -> str:
    """A head's figures in words."""
    figures, trained = facts["figures"], facts["trained"]
    drafts, plain, planted, code = (figures[n] for n in ("drafts", "log_probability", "planted", "true_code"))
    return "\n".join(
        [
            f"Learned from {trained['tokens']:,} tokens in {trained['minutes']} minutes.",
            f"On {drafts['tokens']:,} held-out draft tokens, {drafts['wrong_share']:.0%} of them wrong:",
            f"  above {facts['threshold']:.3f} ({figures['rule']}): precision {drafts['precision']:.3f}, "
            f"recall {drafts['recall']:.3f}",
            f"  average precision {drafts['average_precision']:.3f}, AUC {drafts['auc']:.3f}; by the log-probability "
            f"alone {plain['average_precision']:.3f} and {plain['auc']:.3f} "
            f"(precision {plain['precision']:.3f}, recall {plain['recall']:.3f})",
            f"Of {planted['wrong']:,} planted errors {planted['recall']:.1%} are found, "
            f"{planted['strict']['recall']:.1%} above the strict bound {facts['strict']:.3f}.",
            f"Of {code['tokens']:,} tokens of true code {code['flagged']:.2%} are flagged, "
            f"{code['strict']:.2%} above the strict bound.",
        ]
    )


class Stages:
    """One bar on stderr for each stage, with the time it has taken."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<16}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Stages:
        """Show the bars."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bars as they are."""
        self._progress.stop()

    def show(self, stage: str, done: float) -> None:
        """Move a stage's bar; a new stage gets a new one."""
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._progress.stop_task(task)
            self._tasks[stage] = self._progress.add_task(stage, total=1.0)
        self._progress.update(self._tasks[stage], completed=done)


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise InputError(f"{text!r} is no list of layers.", advice="Write it as 9,19,29.") from None
