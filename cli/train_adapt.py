"""`remask train adapt`: a corpus of your own code, a run on it, and what it learned as an adapter."""

from __future__ import annotations

from pathlib import Path

import click

from remask.cli.options import FiniteRange
from remask.cli.train_corpus import ProgressBars
from remask.cli.train_run import keep_memory, parsed, train

FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--repo", type=FOLDER, required=True, help="The folder with your code.")
@click.option("--out", type=FOLDER, required=True, help="A folder for the corpus, the run and the adapter.")
@click.option("--model", type=FOLDER, help="The checkpoint to adapt instead of the default model.")
@click.option("--minutes", default=30.0, type=FiniteRange(0, min_open=True), help="How long to train from now.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change the recipe, e.g. rank=16.")
@click.option("--device", default="auto", help="auto, cpu or cuda.")
def adapt(repo: Path, out: Path, model: Path | None, minutes: float, settings: tuple[str, ...], device: str) -> None:
    """Teach the model your own code: corpus, training and adapter in one go. Again: it goes on where it was."""
    keep_memory()
    from remask.engine.training.corpus.build import CorpusRequest, build_corpus
    from remask.engine.training.export import ExportRequest, export_run
    from remask.engine.training.recipe import Recipe
    from remask.engine.training.run import RunRequest
    from remask.engine.training.trainer import Plan

    recipe = Recipe.from_dict(parsed(settings))
    corpus = out / "corpus"
    if not (corpus / "corpus.json").is_file():
        with ProgressBars() as bars:
            build_corpus(CorpusRequest(out=corpus, repo=repo, model=model), bars)
    train(
        RunRequest(
            out=out / "run", corpus=corpus, recipe=recipe, plan=Plan(minutes=minutes), model=model, device=device
        )
    )
    done = export_run(ExportRequest(run=out / "run", out=out / "adapter", base=model, replace=True))
    click.echo(f"What it learned is ready: use it with --{done.form} {done.folder}.")
