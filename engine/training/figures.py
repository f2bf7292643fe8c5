"""The figures of `remask eval --json` as tables of a model card, models side by side. Knows reports as JSON only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remask.contract.errors import InputError

_LABELS = {
    "dtype": "precision",
    "device": "device",
    "threads": "threads",
    "interrupted": "interrupted",
    "pass_rate": "pass rate",
    "pass_interval": "its 95 % interval",
    "exact_match": "exact match",
    "edit_similarity": "edit similarity",
    "kept_rate": "kept characters",
    "parse_rate": "whole file parses",
    "empty_rate": "empty",
    "failures": "first failures",
    "tokens": "tokens",
    "forwards": "passes",
    "extra": "drafts beside passes, in one-token passes",
    "tpf": "tokens a pass",
    "tok_s": "tokens a second",
    "prompt_tokens": "prompt tokens",
    "prompt_passes": "prompt passes",
    "ms_p50": "ms a task, median",
    "ms_p95": "ms a task, 95th percentile",
    "ms_total": "ms in all",
    "ms_prompt_p50": "ms for the prompt, median",
    "ms_decode_p50": "ms for decoding, median",
    "same_text": "same text as the first policy",
    "ended": "ended by",
    "ce": "causal cross-entropy (nats a token)",
    "ce_prefix": "on prefixes",
    "ce_middle": "on middles",
    "causal_top1": "middle tokens predicted by the causal reading",
    "middle_tokens": "middle tokens",
    "rounds": "verified rounds",
    "tokens_per_round": "tokens a verified round (two passes)",
    "accepted": "rounds that accept 1, 2, ... draft tokens",
}
_RATES = {"pass_rate", "pass_interval", "exact_match", "kept_rate", "parse_rate", "empty_rate", "same_text"}
_RATES |= {"causal_top1", "accepted"}
_TITLE = ("split", "n", "seed", "gate", "context", "canvas")  # what must be equal to stand side by side
_BLOCKS = "blocks"


@dataclass(frozen=True, slots=True)
class Column:
    """One model's figures by one policy ("" where no policy decoded)."""

    model: str
    policy: str
    title: tuple[object, ...]
    values: Mapping[str, Any]


def read_figures(path: Path) -> list[Column]:
    """The columns of a report, one a policy. Raises InputError for another file than `remask eval --json` prints."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        common = {name: report[name] for name in ("dtype", "device", "threads")}
        rows = report["policies"] if "policies" in report else [{"n": report["n"], "ce": report["ce"]} | report]
        return [_column(report, common, row) for row in rows]
    except OSError as error:
        raise InputError(f"The figures {path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"The file {path} does not hold what 'remask eval ... --json' prints.") from None


def figure_tables(columns: Sequence[Column]) -> str:
    """Markdown: a table for each set of tasks, a row for each figure, a column for each model and policy."""
    groups: dict[tuple[object, ...], list[Column]] = {}
    for column in columns:
        groups.setdefault(column.title, []).append(column)
    return "\n\n".join(_table(title, group) for title, group in groups.items())


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the first one as the head; the first column to the left, the others to the right."""
    head, *body = rows
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *body])


def _column(report: Mapping[str, Any], common: Mapping[str, Any], row: Mapping[str, Any]) -> Column:
    known = {name: value for name, value in row.items() if name in _LABELS and value is not None}
    known |= _agreement(row.get(_BLOCKS) or [])
    title = tuple((dict(report) | dict(row)).get(name) for name in _TITLE)
    interrupted = {"interrupted": "yes"} if report.get("interrupted") else {}
    return Column(str(report["model"]), str(row.get("policy", "")), title, dict(common) | known | interrupted)


def _agreement(blocks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Rates by position of the canvas, a row for each share of masks and what is compared with."""
    rows = {}
    for block in blocks:
        for against, says in (("true", "the truth"), ("causal", "the causal reading")):
            rates = " ".join("-" if rate is None else f"{rate:.2f}" for rate in block[against])
            rows[f"canvas with {block['mask_rate']:.0%} masks agrees with {says}, by position"] = rates
    return rows


def _table(title: tuple[object, ...], columns: Sequence[Column]) -> str:
    split, count, seed, gate, context, canvas = title
    said = f"**{split}**, {count} {'tasks' if canvas is None else 'examples'}, seed {seed}"
    said += ", as the editor shows them" if gate else ""
    said += ", with other files" if context else ""
    said += f", canvases of {canvas}" if canvas is not None else ""
    names = list(dict.fromkeys(name for column in columns for name in column.values))
    varied = len({(c.model, c.policy) for c in columns}) > len({c.model for c in columns})
    heads = [f"{c.model}, {c.policy}" if varied else c.model for c in columns]
    rows = [[_LABELS.get(name, name), *(_cell(name, c.values.get(name)) for c in columns)] for name in names]
    return f"{said}\n\n{markdown_table([['', *heads], *rows])}"


def _cell(name: str, value: object) -> str:
    if value is None or (isinstance(value, Mapping) and not value):
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    if isinstance(value, list | tuple):
        return " ".join(_cell(name, one) for one in value)
    if name in _RATES and isinstance(value, int | float):
        return f"{value:.1%}"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())
