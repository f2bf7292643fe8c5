"""`remask train draft-head`: the head that drafts what the whole model verifies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from remask.cli.options import FiniteRange
from remask.cli.train_corrector import Stages
from remask.cli.train_run import keep_memory, parsed

FOLDER = click.Path(path_type=Path)


@click.command(name="draft-head")
@click.option("--corpus", type=FOLDER, required=True, help="A corpus made by 'remask train corpus'.")
@click.option("--out", type=FOLDER, required=True, help="A .safetensors file, or a folder for draft_head.safetensors.")
@click.option("--model", type=FOLDER, help="The checkpoint that will be drafted for instead of the default model.")
@click.option("--adapter", type=FOLDER, help="An adapter that will be merged into it.")
@click.option("--minutes", default=0.0, type=FiniteRange(0), help="How long it may learn.")
@click.option("--steps", default=0, type=click.IntRange(0), help="End after so many steps (repeatable).")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change the recipe, e.g. inner=1024.")
@click.option("--device", default="auto", help="auto, cpu or cuda.")
@click.option("--dtype", default="auto", help="What the model is read in: auto, int8, fp8, float32 or bfloat16.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def draft_head(
    corpus: Path,
    out: Path,
    model: Path | None,
    adapter: Path | None,
    minutes: float,
    steps: int,
    settings: tuple[str, ...],
    device: str,
    dtype: str,
    as_json: bool,
) -> None:
    """Train a draft head: it guesses the next tokens from the model's last state."""
    values = parsed(settings)
    keep_memory()
    from remask.engine.training.draft_head import HeadRecipe
    from remask.engine.training.draft_head_run import HeadRequest, make_draft_head

    request = HeadRequest(
        corpus=corpus,
        out=out,
        recipe=HeadRecipe.from_dict(values),
        minutes=minutes,
        steps=steps,
        model=model,
        adapter=adapter,
        device=device,
        dtype=dtype,
    )
    with Stages() as stages:
        path, facts = make_draft_head(request, stages.show)
    size = path.stat().st_size
    click.echo(json.dumps({"file": str(path), "bytes": size, **facts}) if as_json else summary(facts))
    if not as_json:
        click.echo(f"The head is in {path} ({size / 1e6:.1f} MB).")


def summary(facts: dict[str, Any]) -> str:
    """A head's figures in words."""
    agreement, trained = facts["agreement"], facts["trained"]
    places = ", ".join(f"{one:.0%}" for one in agreement["by_place"])
    longest, drafts = len(agreement["by_place"]), f"{agreement['drafts']:,}"
    return "\n".join(
        [
            f"Learned from {trained['positions']:,} places in {trained['minutes']} minutes.",
            f"Of {drafts} held-out drafts' tokens these are the model's own, where those before them are: {places}.",
            f"Verified drafts of {longest} would write {agreement['tokens_a_pass']:.2f} tokens a pass.",
        ]
    )
