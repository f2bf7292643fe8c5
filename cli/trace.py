"""`remask trace`: draws what `remask complete --trace` recorded. Writes and reads the file; knows no model."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from remask.contract.errors import InputError, StorageError
from remask.engine.decode.trace import Record, from_json, to_json

MAX_BYTES = 50_000_000


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--width", type=click.IntRange(20, 500), help="Columns to draw in, instead of the terminal's.")
def trace(file: Path, width: int | None) -> None:
    """Draw the passes of a completion, from a FILE that remask complete --trace wrote."""
    from rich.console import Console

    from remask.cli.trace_picture import draw

    console = Console(highlight=False, width=width)
    for record in read(file):
        draw(record, console)


def read(path: Path) -> list[Record]:
    """The records of a trace file. Raises InputError for a file that is none, or damaged."""
    try:
        if not path.is_file():
            raise InputError(f"There is no file {path}.")
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} has more than {MAX_BYTES / 1e6:.0f} MB, which no trace has.")
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{path} is not a trace: it holds no JSON.", advice="Make one with remask complete --trace FILE."
        ) from None
    try:
        return from_json(values)
    except InputError as error:
        raise InputError(f"{path} cannot be drawn. {error.message}", advice=error.advice) from None


def check(path: Path) -> None:
    """Refuse, before any work is done, what `write` could not write. Raises InputError."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file, so no trace is written there.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"There is no folder {path.absolute().parent} for the trace.")


def write(path: Path, records: Sequence[Record]) -> None:
    """Write a trace file that only its owner may read: it holds source text. Raises StorageError."""
    name = ""
    try:
        # A file of mkstemp's has mode 0600 from its first moment on.
        handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(to_json(records), stream, ensure_ascii=False, indent=1)
        os.replace(name, path)
    except OSError as error:
        if name:
            with suppress(OSError):
                os.unlink(name)
        raise StorageError(f"The trace cannot be written to {path}: {error.strerror or error}.") from None
