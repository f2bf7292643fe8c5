"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from remask.engine.api import Engine

F = TypeVar("F", bound=Callable[..., Any])


CORRECTOR, DRAFT_HEAD, STEERS = "remask.corrector", "remask.draft-head", "remask.steers"
"""Where options that no command has to name lie in click's context."""


class FiniteRange(click.FloatRange):
    """A FloatRange that refuses what is no number, which lies in no range and beyond none, and infinities."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See `click.ParamType`."""
        if not math.isfinite(number := float(click.FLOAT.convert(value, param, ctx))):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))


def engine_options(command: F) -> F:
    """`--model`, `--adapter`, `--device` and `--dtype`, and what only `load_engine` has to know."""
    for option in (
        click.option(
            "--steer",
            metavar="FILE[:STRENGTH]",
            multiple=True,
            expose_value=False,
            callback=lambda context, _, value: context.meta.update({STEERS: value}),
            help="A steering vector, and how strongly (repeatable).",
        ),
        click.option(
            "--draft-head",
            type=click.Path(path_type=Path),
            expose_value=False,
            callback=lambda context, _, value: context.meta.update({DRAFT_HEAD: value}),
            help="A draft head's file instead of the one beside the model.",
        ),
        click.option(
            "--corrector",
            type=click.Path(path_type=Path),
            expose_value=False,
            callback=lambda context, _, value: context.meta.update({CORRECTOR: value}),
            help="A corrector head's file instead of the one beside the model.",
        ),
        click.option("--dtype", default="auto", help="auto, int8, fp8, float32 or bfloat16."),
        click.option("--device", default="auto", help="auto, cpu or cuda."),
        click.option(
            "--adapter", type=click.Path(path_type=Path), help="A folder with a LoRA adapter, merged into the model."
        ),
        click.option(
            "--model", type=click.Path(path_type=Path), help="A checkpoint folder instead of the default model."
        ),
    ):
        command = option(command)
    return command


def refuse_files_with(option: str, **named: object) -> None:
    """Raises InputError where a file or folder is named that `option` leaves no use for."""
    from remask.contract.errors import InputError

    context = click.get_current_context()
    kept = {"--steer": STEERS, "--draft-head": DRAFT_HEAD, "--corrector": CORRECTOR}
    given = named | {flag: context.meta.get(key) for flag, key in kept.items()}
    if unused := next((flag for flag, value in given.items() if value), None):
        raise InputError(
            f"{option} takes random weights, which {unused} does not belong to.", advice="Leave one of them out."
        )


def load_engine(model: Path | None, adapter: Path | None, device: str, dtype: str, cache: bool) -> Engine:
    """Load the engine into this process (imports torch). Raises ModelError or InputError."""
    from remask.engine.api import Engine, EngineOptions
    from remask.engine.control.steering import Steer

    context = click.get_current_context(silent=True)
    further = {} if context is None else context.meta
    return Engine.load(
        EngineOptions(
            model=model,
            adapter=adapter,
            corrector=further.get(CORRECTOR),
            draft_head=further.get(DRAFT_HEAD),
            steer=tuple(Steer.parse(text) for text in further.get(STEERS, ())),
            device=device,
            dtype=dtype,
            cache=cache,
        )
    )
