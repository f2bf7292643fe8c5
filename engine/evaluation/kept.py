"""Results of a long measurement in a file, a JSON line each, so that it goes on where it was ended.

Knows keys and JSON values; knows nothing of what was measured.
"""

from __future__ import annotations

import json
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
        if not lines:
            self._write(f"{head}\n", "w")
        elif not whole.endswith("\n"):
            self._write("\n".join([*lines, ""]), "w")

    def get(self, key: str) -> dict[str, Any] | None:
        """The values that were kept under a key."""
        return self._known.get(key)

    def add(self, key: str, values: Mapping[str, Any]) -> None:
        """Keep values at once. Raises StorageError."""
        self._known[key] = dict(values)
        self._write(json.dumps({"key": key, "values": self._known[key]}) + "\n", "a")

    def _write(self, text: str, mode: str) -> None:
        try:
            with self._path.open(mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise StorageError(f"Results cannot be kept in {self._path}: {error}.") from error
