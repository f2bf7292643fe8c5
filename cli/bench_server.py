"""`remask bench server`: what the language server itself costs, with an engine that answers at once."""

from __future__ import annotations

import asyncio
import json

import click


@click.command()
@click.option("--requests", default=300, type=click.IntRange(10, 100_000), help="Completions to ask for.")
@click.option("--documents", default=1_000, type=click.IntRange(10, 100_000), help="Documents to open and close.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def server(requests: int, documents: int, as_json: bool) -> None:
    """Measure the server alone: start-up, time per request and per edit, memory. No model is loaded."""
    from remask.lsp_server.bench import measure

    report = asyncio.run(measure(requests, documents))
    if as_json:
        click.echo(json.dumps(report))
        return
    for name, value in flat(report):
        click.echo(f"{name:<44} {value:>10}")


def flat(report: dict[str, object], lead: str = "") -> list[tuple[str, str]]:
    """The report as lines of a name and a number."""
    lines: list[tuple[str, str]] = []
    for name, value in report.items():
        if isinstance(value, dict):
            lines += flat(value, f"{lead}{name} ")
        else:
            lines.append((f"{lead}{name}", f"{value:,.3f}" if isinstance(value, float) else str(value)))
    return lines
