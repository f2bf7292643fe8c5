"""`remask eval`: quality of completions, as figures."""

from __future__ import annotations

import click


@click.group(name="eval")
def evaluate() -> None:
    """Measure quality on evaluation data."""
