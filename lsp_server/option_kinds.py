"""The kinds of values that options have: what they accept from JSON and how a page describes them. Knows no option."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remask.contract.messages import MAX_GUIDE_CHARACTERS
from remask.lsp_server.positions import has_surrogates

_TEXT = f"a text of at most {MAX_GUIDE_CHARACTERS} characters"


@dataclass(frozen=True, slots=True)
class Kind:
    """`read` turns a JSON value into the option's or raises ValueError with what it should have been."""

    schema: dict[str, Any]
    read: Callable[[object], Any]
    says: str


def number(low: int, high: int) -> Kind:
    """A whole number within bounds."""
    says = f"a whole number from {low} to {high}"

    def read(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise ValueError(says)

    return Kind({"type": "integer", "minimum": low, "maximum": high}, read, says)


def _read_flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def _read_word(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise ValueError("a word")


def _read_text(value: object) -> str:
    if isinstance(value, str) and len(value) <= MAX_GUIDE_CHARACTERS and not has_surrogates(value):
        return value
    raise ValueError(_TEXT)


def _read_words(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(item, str) and item for item in value):
        return tuple(value)
    raise ValueError("a list of words")


def _read_folder(value: object) -> Path | None:
    if value is None or value == "":
        return None
    if isinstance(value, str) and "\0" not in value:
        return Path(os.path.expanduser(value))  # which leaves an unknown user's name as it is; Path's own raises
    raise ValueError("the path of a folder")


def choice(*words: str) -> Kind:
    """One of a few words."""
    says = f"one of {', '.join(words)}"

    def read(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise ValueError(says)

    return Kind({"type": "string", "enum": list(words)}, read, says)


FLAG = Kind({"type": "boolean"}, _read_flag, "true or false")
WORD = Kind({"type": "string"}, _read_word, "a word")
TEXT = Kind({"type": "string", "maxLength": MAX_GUIDE_CHARACTERS}, _read_text, _TEXT)
WORDS = Kind({"type": "array", "items": {"type": "string"}}, _read_words, "a list of words")
FOLDER = Kind({"type": "string"}, _read_folder, "the path of a folder")


def about(kind: Kind, meaning: str) -> dict[str, Any]:
    """The metadata of an option's field: its kind, and the sentence that the documentation has for it."""
    return {"kind": kind, "meaning": meaning}
