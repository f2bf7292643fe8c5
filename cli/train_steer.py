"""`remask train steer`: a steering vector from texts that have something and texts that lack it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remask.cli.options import STEERS, engine_options, load_engine
from remask.cli.source import read_text
from remask.contract.errors import InputError, StorageError

FILE = click.Path(path_type=Path)


@click.command()
@click.option(
    "--with", "having", type=FILE, multiple=True, required=True, help="A text that has it; several times for more."
)
@click.option(
    "--without", "lacking", type=FILE, multiple=True, required=True, help="A text that lacks it (repeatable)."
)
@click.option("--layer", type=int, help="Behind which layer, from 0, it acts; by default a third of the depth.")
@click.option("--out", type=FILE, required=True, help="The .safetensors file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@engine_options
def steer(
    having: tuple[Path, ...],
    lacking: tuple[Path, ...],
    layer: int | None,
    out: Path,
    as_json: bool,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
) -> None:
    """Make a steering vector: the mean difference of hidden states, with and without."""
    if out.suffix != ".safetensors":
        raise InputError(f"A steering vector is a .safetensors file, and {out} is not named so.")
    if not out.absolute().parent.is_dir():
        raise StorageError(f"There is no folder {out.absolute().parent} to write {out.name} to.")
    texts, others = ([read_text(path) for path in paths] for paths in (having, lacking))
    if click.get_current_context().meta.get(STEERS):
        raise InputError("A vector is taken from the plain model: leave --steer out.")
    engine = load_engine(model, adapter, device, dtype, cache=False)
    from remask.engine.control.steering import save_steering
    from remask.engine.models.adapter import adapters_over, digest_of
    from remask.engine.models.choice import find_adapter, find_model
    from remask.engine.training.steering import make_steering

    folder = find_model(model)
    base = digest_of(folder, adapters_over(folder, find_adapter(adapter, model)))
    chosen = engine.model.spec.shape.layers // 3 if layer is None else layer
    made = make_steering(engine.model, texts, others, chosen, base)
    save_steering(out, made)
    facts = {"file": str(out), "layer": made.layer, **made.facts}
    if as_json:
        click.echo(json.dumps(facts))
        return
    click.echo(
        f"Behind layer {made.layer}, from {made.facts['tokens_with']:,} tokens with it and "
        f"{made.facts['tokens_without']:,} without: {made.facts['size']:.1%} of a mean state's length, "
        f"and {made.facts['told_apart']:.0%} of the pairs of texts told apart."
    )
    click.echo(f"The vector is in {out}. Use it with --steer {out}[:strength].")
