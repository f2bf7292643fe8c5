"""`remask train`: corpus, training runs, adapters, heads, export."""

from __future__ import annotations

import click

from remask.cli.train_adapt import adapt
from remask.cli.train_corpus import corpus
from remask.cli.train_corrector import corrector
from remask.cli.train_draft_head import draft_head
from remask.cli.train_export import export
from remask.cli.train_prepare import prepare
from remask.cli.train_run import plot, run
from remask.cli.train_steer import steer


@click.group()
def train() -> None:
    """Train a model on code: pinned packages or your own repository."""


train.add_command(corpus)
train.add_command(corrector)
train.add_command(draft_head)
train.add_command(run)
train.add_command(plot)
train.add_command(adapt)
train.add_command(export)
train.add_command(prepare)
train.add_command(steer)
