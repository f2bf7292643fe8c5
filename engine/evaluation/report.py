"""How reports look in a terminal: a table of rows, and a progress bar while they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from remask.engine.evaluation.bench import Report


@contextmanager
def progress(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr; yields the call that moves it one on."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def plain_grid(title: str, *heads: str) -> Table:
    """A table that fits 80 columns: no frame, numbers to the right; a long name goes on in the next line."""
    grid = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    for place, head in enumerate(heads):
        if place:
            grid.add_column(head, justify="right", no_wrap=True)
        else:
            grid.add_column(head, overflow="fold")
    return grid


def table(report: Report) -> None:
    """Print a decode report."""
    values = report.to_dict()
    console = Console(highlight=False)
    title = f"{report.model}, {report.dtype} on {report.device} (threads: {report.threads}), {report.prompts} holes"
    heads = ("policy", "tokens", "passes", "extra", "tokens/pass", "tokens/s", "median ms", "same text")
    grid = plain_grid(title, *heads)
    for row in report.rows:
        grid.add_row(
            row.policy,
            str(row.tokens),
            str(row.forwards),
            f"{row.extra:.1f}",
            f"{row.tpf:.2f}",
            f"{row.tok_s:.1f}",
            f"{row.ms_p50:.0f}",
            f"{row.same_text:.1%}",
        )
    console.print(grid)
    console.print(f"Speed of {report.rows[:2][-1].policy} against one token a pass: {values['speedup']:.2f} times.")
    for line in report.languages:
        console.print(f"{line.language}, {line.policy}: {line.same_text} of {line.prompts} texts are the same.")
    for d in (one for one in report.differences if one.exact):  # the others write texts of their own
        console.print(
            f"{d.hole}, {d.policy}: token {d.position} is {d.other!r} instead of {d.baseline!r}; "
            f"the two{'' if d.best_two else ', not the two best,'} are {d.margin:.3f} apart in log-probability"
            f"{'.' if d.best_two else f', and {d.behind:.3f} behind the best.'}"
        )
