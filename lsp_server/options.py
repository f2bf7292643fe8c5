"""What a client may set in `initializationOptions`. Knows no engine and no LSP types.

Names are snake_case here and camelCase on the wire. A wrong value never stops the server: it is reported in a sentence
and the default takes its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """All options with their defaults."""

    model: Path | None = None  # a checkpoint's folder; None is the model that ships with Remask
    device: str = "auto"
    dtype: str = "auto"
    max_tokens: int = field(default=64, metadata={"range": (1, 4096)})
    deadline_ms: int = field(default=5_000, metadata={"range": (50, 600_000)})

    def updated(self, values: object) -> tuple[ServerOptions, list[str]]:
        """These options with those in `values` (as the client sent them), and a sentence about each that is wrong."""
        if values is None:
            return self, []
        if not isinstance(values, Mapping):
            return self, [f"Remask's options are an object, not {type(values).__name__}; the defaults are used."]
        known = {_wire_name(option.name): option for option in dataclasses.fields(self)}
        right: dict[str, Any] = {}
        wrong: list[str] = []
        for name, value in values.items():
            option = known.get(str(name))
            if option is None:
                wrong.append(f"Remask has no option '{name}'. It has: {', '.join(known)}.")
                continue
            try:
                right[option.name] = _check(option, value)
            except ValueError as error:
                wrong.append(f"Remask's option '{name}' is {error}, not {value!r:.60}; the default is used.")
        return dataclasses.replace(self, **right), wrong


def _check(option: dataclasses.Field[Any], value: object) -> object:
    if option.name == "model":
        if value is None or value == "":
            return None
        if isinstance(value, str):
            return Path(value).expanduser()
        raise ValueError("the path of a folder")
    if "range" in option.metadata:
        low, high = option.metadata["range"]
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise ValueError(f"a whole number from {low} to {high}")
    if isinstance(value, str) and value:
        return value
    raise ValueError("a word")


def _wire_name(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
