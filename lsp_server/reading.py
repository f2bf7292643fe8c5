"""JSON from a client, read strictly: each function returns what it says or raises InputError."""

from __future__ import annotations

from typing import Any

from remask.contract.errors import InputError

_LACKS = "A message lacks what it must have."


def count(value: object) -> int:
    """A whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InputError(_LACKS)
    return value


def dict_of(value: object) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        raise InputError(_LACKS)
    return value


def list_of(value: object) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise InputError(_LACKS)
    return value


def text_of(value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise InputError(_LACKS)
    return value
