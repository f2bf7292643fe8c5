"""`remask train corpus`: build the packed token files that training reads."""

from __future__ import annotations

import click


@click.command()
def corpus() -> None:
    """Build a corpus."""
