"""How quality reports look in a terminal. Knows reports, measures nothing."""

from __future__ import annotations

from rich.console import Console

from remask.engine.evaluation.faults import Report as FaultsReport
from remask.engine.evaluation.infilling import Report, Row
from remask.engine.evaluation.keystroke import Report as KeystrokeReport
from remask.engine.evaluation.report import plain_grid
from remask.engine.evaluation.syntax import Report as SyntaxReport
from remask.engine.evaluation.tokens import TokenReport


def infilling_table(report: Report) -> None:
    """Print an infilling report: a line for every policy, and what the figures are."""
    console = Console(highlight=False)
    first = report.rows[0]
    title = (
        f"{report.split}: {report.model}, {report.dtype} on {report.device} (threads: {report.threads}), "
        f"{first.n} tasks{', as the editor shows them' if report.gate else ''}"
    )
    grid = plain_grid(title, "policy", "pass", "exact", "similar", "kept", "parse", "empty", "tpf", "p50 ms", "p95 ms")
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
        f"{report.split}: {report.model}, {report.dtype} on {report.device} (threads: {report.threads}), "
        f"{report.n} examples"
    )
    grid = plain_grid(title, "masked", "against", *(str(i) for i in range(1, report.canvas + 1)))
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


def keystroke_table(report: KeystrokeReport) -> None:
    """Print a keystroke report: four lines for every context."""
    console = Console(highlight=False)
    weights = " (random weights)" if report.random_weights else ""
    title = f"{report.model}{weights}, {report.dtype} on {report.device} (threads: {report.threads}), medians"
    grid = plain_grid(title, "context", "start", "n", "prompt", "run", "MB", "prompt ms", "total ms", "processor ms")
    for row in report.rows:
        times = (row.mb, row.prompt_ms, row.total_ms, row.processor_ms)
        counts = (row.n, row.tokens, row.run)
        grid.add_row(str(row.context), row.start, *(str(c) for c in counts), *(f"{ms:.0f}" for ms in times))
    console.print(grid)
    console.print(f"The largest session takes {report.disk_mb} MB on disk.")


def syntax_table(report: SyntaxReport) -> None:
    """Print a syntax report: drafts and what is shown of them, then what judging takes."""
    console = Console(highlight=False)
    languages = ", ".join(f"{count} {name}" for name, count in report.languages.items())
    title = (
        f"{report.split}: {report.model}, {report.dtype} on {report.device} (threads: {report.threads}), "
        f"{report.rows[0].n} tasks ({languages})"
    )
    grid = plain_grid(title, "policy", "drafts: added", "open", "pass", "shown: added", "open", "empty", "pass")
    for row in report.rows:
        drafts, shown = row.drafts, row.shown
        grid.add_row(
            row.policy,
            *(str(drafts[name]) for name in ("added", "open")),
            _percent(row.draft_pass_rate),
            *(str(shown[name]) for name in ("added", "open", "empty")),
            _percent(row.shown_pass_rate),
        )
    console.print(grid)
    for row in report.rows:
        console.print(
            f"{row.policy}: {row.canvas_passes:.2f} passes a canvas, {row.removed} tokens taken back, similarity "
            f"{row.similarity:.3f}; judging takes {row.share:.1%} of decoding ({row.judge_ms + row.gate_ms:.0f} of "
            f"{row.decode_ms:.0f} ms)."
        )
    if report.isolation:
        console.print(f"Tests ran under: {report.isolation}.")
    if report.interrupted:
        console.print(f"Interrupted: {report.rows[0].n} of {report.tasks} tasks are done.")


def faults_table(report: FaultsReport) -> None:
    """Print a report of injected faults: broken and true blocks, by what the judge reads."""
    console = Console(highlight=False)
    title = (
        f"{report.model}, {report.dtype} on {report.device}: {report.rows[0].n} blocks of {report.block} tokens, "
        f"{report.masked:.0%} masked"
    )
    heads = ("policy", "reads", "broken", "seen", "found", "first", "flagged", "right", "whole", "lost")
    grid = plain_grid(title, *heads)
    for row in report.rows:
        shares = (row.noticed, row.found, row.found_first)
        ends = (f"{row.right:.0%}", f"{row.whole:.0%}", f"{row.lost:.2f}")
        cells = (*(f"{share:.0%}" for share in shares), f"{row.flagged:.1f}", *ends)
        grid.add_row(row.policy, row.sees, "yes" if row.broken else "no", *cells)
    console.print(grid)
    console.print(f"tree-sitter sees an error in {report.visible:.1%} of the broken files.")
    if report.interrupted:
        console.print(f"Interrupted: {report.rows[0].n} of {report.faults} blocks are done.")


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


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
