"""`remask model`: which checkpoints there are, what they are, and which one is used."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from remask.contract.errors import InputError, ModelError

if TYPE_CHECKING:
    from remask.engine.models.facts import Facts


@click.group()
def model() -> None:
    """Choose the model."""


@model.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_models(as_json: bool) -> None:
    """List the default model and the known checkpoints in the local hub cache."""
    from remask.engine.models.choice import find_adapter, find_model, known_models
    from remask.engine.models.facts import facts_of

    found, others = [], []
    used = merged = None
    try:
        used, merged = find_model(None), find_adapter(None, None)
    except InputError as error:
        click.echo(str(error), err=True)
    for folder in known_models():
        try:
            found.append(facts_of(folder, merged if folder == used else None))
        except ModelError as error:
            others.append((folder, error.message))
    if as_json:
        rows = [asdict(f) | {"used": f.folder == str(used)} for f in found]
        click.echo(json.dumps({"models": rows, "not_usable": [{"folder": str(f), "why": w} for f, w in others]}))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("", "model", "family", "parameters", "memory", "fits", "licence"):
        table.add_column(head, overflow="fold", no_wrap=head not in ("model", "licence"))  # 80 columns cut no name
    for f in found:
        mark = "*" if f.folder == str(used) else ""
        size, memory = f"{f.parameters / 1e9:.2f} B", f"{f.memory / 1e9:.1f} GB"
        table.add_row(mark, f.name, f.family, size, memory, "yes" if f.fits else "no", f.licence)
    Console(highlight=False).print(table)
    for folder, why in others:
        click.echo(f"Not usable: {folder.parent.parent.name.removeprefix('models--').replace('--', '/')}: {why}")


@model.command()
@click.argument("source", required=False)
@click.option("--adapter", help="A LoRA adapter for it: a folder or organisation/name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(source: str | None, adapter: str | None, as_json: bool) -> None:
    """Show what SOURCE is and needs.

    SOURCE is a folder, organisation/name, a name that 'remask model list' shows, or "default"; the model in use where
    it is left out.
    """
    from remask.engine.models.choice import find_adapter, find_model
    from remask.engine.models.facts import facts_of

    folder = find_model(None) if source is None else folder_named(source)
    facts = facts_of(folder, find_adapter(adapter, source))
    if as_json:
        click.echo(json.dumps(asdict(facts)))
        return
    for name, value in described(facts).items():
        click.echo(f"{name:<12}{value}")


@model.command()
@click.argument("source")
@click.option("--adapter", help="A LoRA adapter for it: a folder or organisation/name.")
def use(source: str, adapter: str | None) -> None:
    """Use SOURCE from now on, with an adapter or without.

    SOURCE is a folder, organisation/name, a name that 'remask model list' shows, or "default".
    """
    from remask.engine.models.choice import DEFAULT_MODEL, choose_model, find_adapter
    from remask.engine.models.facts import facts_of

    folder = folder_named(source)
    default = folder == DEFAULT_MODEL
    if default and adapter is None:
        choose_model(None)
        click.echo("Using the default model.")
        return
    merged = find_adapter(adapter, folder)
    facts = facts_of(folder, merged)
    choose_model(None if default else folder, merged)
    click.echo(f"Using {facts.name} ({facts.family}, {facts.parameters / 1e9:.2f} B parameters).")
    if not facts.fits:
        click.echo(f"It needs about {facts.memory / 1e9:.1f} GB, which this machine does not have free.", err=True)
        if facts.memory_eight_bits:
            click.echo(f"With --dtype int8 about {facts.memory_eight_bits / 1e9:.1f} GB do.", err=True)


def folder_named(source: str) -> Path:
    """The checkpoint's folder: as `find_model` finds it, of "default", or of a name that `remask model list` shows.

    Raises InputError where there is none.
    """
    from remask.engine.models.choice import DEFAULT_MODEL, find_model, known_models
    from remask.engine.models.facts import facts_of

    if source == "default" and not Path(source).is_dir():
        return DEFAULT_MODEL
    try:
        return find_model(source)
    except InputError:
        for folder in known_models():
            with suppress(ModelError):
                if facts_of(folder).name == source:
                    return folder
        raise


def described(facts: Facts) -> dict[str, str]:
    """The facts as a person reads them."""
    return {
        "model": facts.name,
        "folder": facts.folder,
        "adapter": ", ".join(facts.adapters) or "none",
        "family": facts.family,
        "regime": facts.regime,
        "parameters": f"{facts.parameters / 1e9:.3f} billion",
        "memory": f"{facts.memory / 1e9:.1f} GB with 4,096 tokens of context"
        + ("" if facts.fits else " (more than is free here)")
        + (f"; {facts.memory_eight_bits / 1e9:.1f} GB with weights of 8 bits" if facts.memory_eight_bits else ""),
        "infilling": facts.infilling,
        "KV cache": facts.cache,
        "verifies": "yes" if facts.verifies else "no",
        "policy": facts.policy,
        "licence": facts.licence,
    }
