"""Results of a long measurement in a file, a JSON line each, so that it goes on where it was ended.

Knows keys and JSON values; knows nothing of what was measured.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remask.contract.errors import InputError, StorageError


class Kept:
    """What is in the file, and what is added to it. The first line says what was measured how.

    Raises InputError for a file of another measurement or of something else, and StorageError where it cannot be read
    or written. A last line that was cut off is dropped.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        head = json.dumps(dict(settings), sort_keys=True)
        try:
            whole = path.read_text("utf-8") if path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"The results in {path} cannot be read: {error}.") from error
        lines = whole[: whole.rfind("\n") + 1].splitlines()
        if lines[:1] != [head] and whole:
            raise InputError(
                f"{path} holds something else than results of this measurement.", advice="Name another file."
            )
        try:
            self._known = {one["key"]: one["values"] for one in map(json.loads, lines[1:])}
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"The results in {path} are damaged.", advice="Name another file.") from error
        if not whole.endswith("\n"):  # it is new, or its last line was cut off
            self._begin("\n".join([*(lines or [head]), ""]))

    def get(self, key: str) -> dict[str, Any] | None:
        """The values that were kept under a key."""
        return self._known.get(key)

    def add(self, key: str, values: Mapping[str, Any]) -> None:
        """Keep values at once. Raises StorageError."""
        self._known[key] = dict(values)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "values": self._known[key]}) + "\n")
        except OSError as error:
            raise self._refused(error) from error

    def _begin(self, text: str) -> None:
        """Put this into the file in place of all that is there, or leave that alone."""
        unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            try:
                unfinished.write_text(text, "utf-8")
                os.replace(unfinished, self._path)
            finally:
                unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(f"Results cannot be kept in {self._path}: {error.strerror}.")
