"""The model card of what a run gave: everything in it comes from the run, its log, and measured figures.

Names no path and no machine. Knows facts as JSON values; reads and measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remask.engine.training.figures import Column, figure_tables, markdown_table

ENDS = 10  # records that the first and the last training losses are the mean of
LOSSES = ("total", "causal", "middle", "canvas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a card states. `facts` are the run's, `records` its log's; `hardware` as `describe_hardware` gives it.

    `form`: "adapter" or "model". `origin`: what the base itself was made from, "" where its card does not say.
    `hardware_is_runs`: the run recorded it; else it is that of the machine that exported.
    """

    name: str
    form: str
    base: str
    origin: str
    licence: str
    size: int
    facts: Mapping[str, Any]
    recipe: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    hardware: Mapping[str, Any]
    hardware_is_runs: bool
    figures: Sequence[Column]


def render_card(card: Card) -> str:
    """The card as Markdown with front matter."""
    rank = card.recipe["rank"]
    learned = f"LoRA of rank {rank} beside every projection" if rank else "all weights"
    form = "a LoRA adapter, merged into its base when that is loaded" if card.form == "adapter" else "a whole model"
    parts = [
        f"---\nlicense: {card.licence}\nbase_model: {card.origin or card.base}\nlanguage: code\n---\n# {card.name}",
        f"{form[0].upper()}{form[1:]}, for Remask: it fills holes in code and denoises blocks of masked tokens.",
        markdown_table([("", ""), *_overview(card, learned)]),
        "## Data\n\n" + _data(card.facts.get("corpus")),
        "## Training\n\n" + _training(card),
        _losses(card.records),
        "## Figures\n\n" + (figure_tables(card.figures) if card.figures else "None were measured for this card."),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _overview(card: Card, learned: str) -> list[tuple[str, str]]:
    base = f"{card.base}, made from {card.origin}" if card.origin else card.base
    files = "int8 with one float32 scale a row (`<name>_scale`), the rest float32"
    return [
        ("Base", base),
        ("Licence", card.licence),
        ("Learned", learned),
        ("Files", f"{card.size / 1e6:.1f} MB of weights: {files}; `SHA256SUMS` is checked at each load"),
        ("Tokens seen", f"{card.facts['tokens']:,}, padding counted"),
        ("Steps", f"{card.facts['step']:,}"),
        ("Time", _duration(float(card.facts["seconds"]))),
        ("Hardware", _hardware(card)),
    ]


def _hardware(card: Card) -> str:
    known = card.hardware
    said = [str(known.get("gpu") or known.get("processor", "unknown processor"))]
    said += [f"{known['cores']} cores"] if "cores" in known else []
    said += [f"threads used: {card.facts['threads']}"] if "threads" in card.facts else []
    said += [str(card.facts["dtype"])] if "dtype" in card.facts else []
    said += [f"{known['memory_gb']} GB"] if "memory_gb" in known else []
    said += [f"torch {known['torch']}"] if "torch" in known else []
    return ", ".join(said) + ("" if card.hardware_is_runs else " (of the machine that exported it)")


def _data(corpus: object) -> str:
    """What the run recorded of its corpus: counts and licences, nothing else of it."""
    if not isinstance(corpus, Mapping) or not corpus:
        return "The run does not say what it was trained on."
    splits = corpus.get("splits")
    train = splits.get("train", {}) if isinstance(splits, Mapping) else {}
    counts = [(corpus.get("packages"), "packages"), (train.get("rows"), "rows"), (train.get("tokens"), "tokens")]
    said = (f"{n:,} {what if n != 1 else what.removesuffix('s')}" for n, what in counts if isinstance(n, int))
    text = f"A corpus of code: {', '.join(said)}."
    if isinstance(corpus.get("row_tokens"), int):
        text += f" A row has {corpus['row_tokens']} tokens."
    licences = corpus.get("licences")
    if isinstance(licences, list) and licences:
        text += f" Licences: {', '.join(str(one) for one in licences)}."
    return text


def _training(card: Card) -> str:
    """The recipe, a value a name; `Recipe`'s documentation says what they mean."""
    values = [(f"`{name}`", f"{value:g}") for name, value in card.recipe.items()]
    return "The recipe (`remask.engine.training.recipe` explains it):\n\n" + markdown_table([("", ""), *values])


def _losses(records: Sequence[Mapping[str, Any]]) -> str:
    """First and last losses in nats: training as means of ten steps, validation always over the same batches."""
    rows = []
    for kind, count in (("train", ENDS), ("validation", 1)):
        own = [r for r in records if r["kind"] == kind and all(isinstance(r.get(n), int | float) for n in LOSSES)]
        for part in (own[:count], own[-count:]) if own else ():
            first, last = part[0]["step"], part[-1]["step"]
            steps = f"step {first}" if first == last else f"steps {first} to {last}"
            means = [sum(float(r[name]) for r in part) / len(part) for name in LOSSES]
            rows.append((f"{kind}, {steps}", *(f"{mean:.3f}" for mean in means)))
    rows = list(dict.fromkeys(rows))
    return "Losses in nats:\n\n" + markdown_table([("", *LOSSES), *rows]) if rows else ""


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} seconds"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
