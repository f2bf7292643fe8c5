"""`remask train export`: what a training run gave, as a folder that others load."""

from __future__ import annotations

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("run", type=FOLDER)
@click.option("--out", type=FOLDER, required=True, help="The folder to make: new or empty.")
@click.option("--base", type=FOLDER, help="The checkpoint that was trained; the model in use where left out.")
@click.option("--name", default="", help="What the result is called.")
@click.option("--merge", is_flag=True, help="A whole model instead of an adapter over its base.")
@click.option(
    "--figures", type=FOLDER, multiple=True, help="A file that 'remask eval ... --json' printed, for the card."
)
def export(run: Path, out: Path, base: Path | None, name: str, merge: bool, figures: tuple[Path, ...]) -> None:
    """Export the newest checkpoint of RUN: an adapter, or a whole model with int8 rows, and its model card."""
    from remask.engine.training.export import ExportRequest, export_run

    done = export_run(ExportRequest(run=run, out=out, base=base, name=name, merge=merge, figures=figures))
    option = "--adapter" if done.form == "adapter" else "--model"
    click.echo(f"The {done.form} {done.name} ({done.size / 1e6:.1f} MB) is in {out}: use it with {option} {out}.")
