"""`remask train`: corpus, training runs, adapters, heads, export."""

from __future__ import annotations

import click

from remask.cli.train_corpus import corpus


@click.group()
def train() -> None:
    """Train a model on code: pinned packages or your own repository."""


train.add_command(corpus)
