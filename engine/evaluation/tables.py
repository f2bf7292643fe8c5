"""How quality reports look in a terminal. Knows reports, measures nothing."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from remask.engine.evaluation.infilling import Report, Row


def infilling_table(report: Report) -> None:
    """Print an infilling report: a line for every policy, and what the figures are."""
    console = Console(highlight=False)
    first = report.rows[0]
    title = (
        f"{report.split}: {report.model}, {report.dtype} on {report.device} ({report.threads} threads), "
        f"{first.n} tasks{', as the editor shows them' if report.gate else ''}"
    )
    grid = Table(title=title)
    for head in ("policy", "pass", "exact", "similar", "kept", "parse", "empty", "tpf", "p50 ms", "p95 ms"):
        grid.add_column(head, justify="left" if head == "policy" else "right", no_wrap=True)
    for row in report.rows:
        grid.add_row(row.policy, *_cells(row))
    console.print(grid)
    if first.pass_rate is not None and first.pass_interval is not None:
        low, high = first.pass_interval
        console.print(
            f"With {first.n} tasks, sampling alone leaves {first.policy}'s pass rate between {low:.1%} and {high:.1%}."
        )
    if report.isolation:
        console.print(f"Tests ran under: {report.isolation}.")
    if report.interrupted:
        console.print(f"Interrupted: {first.n} of {report.tasks} tasks are done.")


def _cells(row: Row) -> list[str]:
    return [
        "-" if row.pass_rate is None else f"{row.pass_rate:.1%}",
        f"{row.exact_match:.1%}",
        f"{row.edit_similarity:.2f}",
        f"{row.kept_rate:.1%}",
        f"{row.parse_rate:.1%}",
        f"{row.empty_rate:.1%}",
        f"{row.tpf:.2f}",
        f"{row.ms_p50:.0f}",
        f"{row.ms_p95:.0f}",
    ]
