"""How quality reports look in a terminal. Knows reports, measures nothing."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from remask.engine.evaluation.infilling import Report, Row
from remask.engine.evaluation.tokens import TokenReport


def infilling_table(report: Report) -> None:
    """Print an infilling report: a line for every policy, and what the figures are."""
    console = Console(highlight=False)
    first = report.rows[0]
    title = (
        f"{report.split}: {report.model}, {report.dtype} on {report.device} ({report.threads} threads), "
        f"{first.n} tasks{', as the editor shows them' if report.gate else ''}"
    )
    grid = _grid(title, "policy", "pass", "exact", "similar", "kept", "parse", "empty", "tpf", "p50 ms", "p95 ms")
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


def tokens_table(report: TokenReport) -> None:
    """Print a token report: agreement by position for every mask rate, then what a round gives."""
    console = Console(highlight=False)
    values = report.to_dict()
    title = (
        f"{report.split}: {report.model}, {report.dtype} on {report.device} ({report.threads} threads), "
        f"{report.n} examples"
    )
    grid = _grid(title, "masked", "against", *(str(i) for i in range(1, report.canvas + 1)))
    for block in values["blocks"]:
        for against in ("true", "causal"):
            cells = ["-" if rate is None else f"{rate:.2f}" for rate in block[against]]
            grid.add_row(f"{block['mask_rate']:.0%}", against, *cells)
    console.print(grid)
    console.print(
        f"Causal cross-entropy {values['ce']:.3f} (middle {values['ce_middle']:.3f}); the causal reading predicts "
        f"{values['causal_top1']:.1%} of the middle's tokens."
    )
    console.print(
        f"A verified round gives {values['tokens_per_round']:.2f} tokens in two passes; so many accept 1, 2, ... of "
        f"the draft: {' '.join(f'{share:.2f}' for share in values['accepted'])}."
    )
    if report.interrupted:
        console.print(f"Interrupted: {report.n} examples are done.")


def _grid(title: str, *heads: str) -> Table:
    """A table that fits 80 columns: no frame, numbers to the right."""
    grid = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    for place, head in enumerate(heads):
        grid.add_column(head, justify="right" if place else "left", no_wrap=True)
    return grid


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
