"""`remask stats`: what became of the completions, counted on this machine. Knows the counts, not how they are made."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click


@click.command()
@click.option("--days", default=30, type=click.IntRange(1, 400), help="How many days to look back on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats(days: int, as_json: bool) -> None:
    """Show how many completions were offered, accepted and kept. Nothing of it ever leaves this machine.

    A server writes its counts when a file is saved or closed and when it ends.
    """
    from remask.lsp_server.statistics import COUNTS, read_statistics

    newest = dict(sorted(read_statistics().items())[-days:])
    total = {name: sum(counts[name] for counts in newest.values()) for name in COUNTS}
    if as_json:
        click.echo(json.dumps({"days": newest, "total": total, **rates(total)}))
        return
    if not newest:
        click.echo("Nothing has been counted yet.")
        return
    click.echo(f"{next(iter(newest))} to {next(reversed(newest))}")
    for sentence in sentences(total):
        click.echo(f"  {sentence}")


def rates(total: Mapping[str, int]) -> dict[str, float | None]:
    """The share that was accepted, and of the accepted characters the share that was kept; None of nothing."""
    return {
        "acceptance_rate": _share(total["accepted"] + total["partly"], total["offered"]),
        "kept_rate": _share(total["characters_kept"], total["characters_checked"]),
    }


def sentences(total: Mapping[str, int]) -> list[str]:
    """The counts in words."""
    known = rates(total)
    return [
        f"{total['offered']} completions offered ({total['shown']} known to be shown)",
        f"{total['accepted']} accepted whole, {total['partly']} by words or lines{_percent(known['acceptance_rate'])}",
        f"{total['typed']} typed by hand as they were offered, {total['rejected']} passed over",
        f"{total['characters_accepted']} of {total['characters_offered']} characters accepted",
        f"{total['characters_kept']} of {total['characters_checked']} still there half a minute later"
        f"{_percent(known['kept_rate'])}",
    ]


def _share(part: int, whole: int) -> float | None:
    return round(min(1.0, part / whole), 3) if whole else None


def _percent(share: float | None) -> str:
    return "" if share is None else f" ({share:.0%})"
