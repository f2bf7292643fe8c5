"""New folders that appear under their final name only when they are whole. Knows nothing of what is in them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from remask.contract.errors import InputError, StorageError
from remask.engine.models.shards import SUMS


def refuse_filled(folder: Path) -> None:
    """Raise InputError where a folder that is to be made already holds something."""
    try:
        filled = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be written: {error.strerror or error}.") from error
    if filled:
        raise InputError(f"There is something in {folder} already.", advice="Name a new or empty folder.")


@contextmanager
def new_folder(final: Path, *, replace: bool = False) -> Iterator[Path]:
    """A hidden folder beside `final` to write into; it takes that name at the end, and is gone if anything fails.

    Raises InputError where `final` holds something (unless it is to be replaced), StorageError where the disk refuses.
    """
    if not replace:
        refuse_filled(final)
    final = final.resolve()
    unfinished, old = (final.parent / f".{final.name}.{os.getpid()}{end}" for end in ("", ".old"))
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        yield unfinished
        if replace and final.exists():
            os.replace(final, old)
        os.replace(unfinished, final)
    except (OSError, SafetensorError) as error:
        raise StorageError(
            f"The folder {final} cannot be written: {getattr(error, 'strerror', None) or error}.",
            advice="Free some space, or name another folder.",
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Write SHA256SUMS of files in a folder, in the form of the command of that name."""
    lines = []
    for name in sorted(names):
        with (folder / name).open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")
