"""Loss curves of a run as a picture. Knows the log's records only; matplotlib comes with the `train` extra."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remask.contract.errors import InputError, StorageError

CURVES = ("causal", "middle", "canvas")
SMOOTHED = 0.95  # share of the running mean that a step keeps


def smoothed(values: Sequence[float], share: float = SMOOTHED) -> list[float]:
    """The exponential running mean, corrected for its start (as Adam's moments are, Kingma & Ba 2015)."""
    mean, result = 0.0, []
    for number, value in enumerate(values, 1):
        mean = share * mean + (1 - share) * value
        result.append(mean / (1 - share**number))
    return result


def plot(records: Sequence[dict[str, Any]], target: Path) -> None:
    """Draw smoothed training losses as lines, validation losses as dots, over the tokens seen.

    The format follows the name (png, svg, pdf). Raises InputError without matplotlib or without records, StorageError.
    """
    if not target.suffix:
        raise InputError(f"The picture {target} has no ending.", advice="Name a .png, .svg or .pdf file.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("Pictures need matplotlib.", advice="Install remask[train].") from None
    whole = [r for r in records if all(isinstance(r.get(n), int | float) for n in ("tokens", *CURVES))]
    train = [r for r in whole if r["kind"] == "train"]
    validation = [r for r in whole if r["kind"] == "validation"]
    if not train:
        raise InputError("There is nothing to draw yet.")
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for curve in CURVES:
        line = axes.plot([r["tokens"] / 1e6 for r in train], smoothed([r[curve] for r in train]), label=curve)[0]
        seen = [r["tokens"] / 1e6 for r in validation]
        axes.plot(seen, [r[curve] for r in validation], "o", color=line.get_color())
    axes.set(xlabel="million tokens", ylabel="loss (nats); dots: held-out rows")
    axes.grid(alpha=0.3)
    axes.legend()
    unfinished = target.with_name(f".{os.getpid()}.{target.name}")  # keeps the ending, which decides the format
    try:
        figure.savefig(unfinished)
        os.replace(unfinished, target)
    except ValueError as error:
        raise InputError(f"The picture cannot be written: {error}.", advice="Name a .png, .svg or .pdf file.") from None
    except OSError as error:
        raise StorageError(f"The picture {target} cannot be written: {error.strerror or error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
