"""`remask train corpus`: build the packed token files that training reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from remask.contract.errors import InputError

FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--out", type=FOLDER, required=True, help="The folder for the corpus: new, empty, or an older corpus.")
@click.option("--pins", type=FOLDER, help="A TOML list of packages instead of Remask's own.")
@click.option("--repo", type=FOLDER, help="A folder with your own code instead of packages.")
@click.option("--model", type=FOLDER, help="The checkpoint whose tokenizer is used.")
@click.option("--row-tokens", default=512, type=click.IntRange(128, 8192), help="Tokens a row.")
@click.option("--tokens", type=click.IntRange(1), help="Stop after so many tokens of training examples.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Decides what is drawn and in which order.")
@click.option(
    "--eval-data", type=FOLDER, multiple=True, help="A folder of evaluation sets that must not be in the corpus."
)
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def corpus(
    out: Path,
    pins: Path | None,
    repo: Path | None,
    model: Path | None,
    row_tokens: int,
    tokens: int | None,
    seed: int,
    eval_data: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Build a corpus of infilling examples from pinned packages or your own repository."""
    from remask.engine.training.corpus.build import CorpusRequest, build_corpus
    from remask.engine.training.corpus.examples import ExampleOptions

    if pins is not None and repo is not None:
        raise InputError("A corpus is made of packages (--pins) or of a repository (--repo), not of both.")
    request = CorpusRequest(
        out=out,
        pins=pins,
        repo=repo,
        model=model,
        tokens=tokens,
        seed=seed,
        eval_data=eval_data,
        row_tokens=row_tokens,
        options=ExampleOptions(longest=min(512, row_tokens)),
    )
    with ProgressBars() as bars:
        manifest = build_corpus(request, bars)
    click.echo(json.dumps(manifest) if as_json else summary(out, manifest))


class ProgressBars:
    """One bar on stderr for each stage of the build."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBars:
        """Show the bars."""
        self._progress.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Leave the bars as they are, full where all went well."""
        if kind is None:
            self._finish()
        self._progress.stop()

    def stage(self, name: str, total: int) -> None:
        """Begin a bar; the one before it is done, even if its total was a guess."""
        self._finish()
        self._task = self._progress.add_task(name, total=total)

    def step(self, amount: int = 1) -> None:
        """Move the latest bar."""
        if self._task is not None:
            self._progress.advance(self._task, amount)

    def _finish(self) -> None:
        if self._task is not None:
            task = self._progress.tasks[self._task]
            self._progress.update(self._task, total=task.completed)


def summary(out: Path, manifest: dict[str, Any]) -> str:
    """The manifest as a person reads it."""
    lines = [f"A corpus is in {out}:"]
    for name, facts in manifest["splits"].items():
        shares = ", ".join(f"{kind} {count / facts['examples']:.0%}" for kind, count in facts["kinds"].items())
        lines.append(
            f"  {name}: {facts['rows']:,} rows, {facts['examples']:,} examples, {facts['tokens']:,} tokens; middles of "
            f"{facts['mean_middle_tokens']} tokens on average" + (f" ({shares})" if shares else "")
        )
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in manifest["dropped"].items())
    lines.append(f"  Files left out: {dropped or 'none'}.")
    lines += [f"  It holds an evaluation line: {c['package']}/{c['path']}" for c in manifest["contaminated"]]
    return "\n".join(lines)
