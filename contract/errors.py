"""The one exception tree of Remask.

RemaskError
├── InputError      what was asked for cannot be used: a file, a position, a language, an option
├── ModelError      a checkpoint is missing, damaged or of a kind that Remask cannot run
├── StorageError    the disk or a folder refuses: full, read-only, no permission
└── EngineError     the engine process could not start, died or answered nonsense

Each message is one clear sentence for a user; `advice` says what to do about it. Being cancelled is
not an error: it is a `Reason` (see messages).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class RemaskError(Exception):
    """Base of all errors that Remask raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".rstrip()

    def to_dict(self) -> dict[str, str]:
        """The error as plain JSON values, as it crosses from one process to another."""
        return {"kind": type(self).__name__, "message": self.message, "advice": self.advice}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> RemaskError:
        """Inverse of `to_dict`, never raises; a kind that is not known here is an EngineError."""
        kind = next((one for one in _kinds(RemaskError) if one.__name__ == values.get("kind")), EngineError)
        return kind(str(values.get("message") or "The engine failed."), advice=str(values.get("advice") or ""))


class InputError(RemaskError):
    """What the user or a client asked for cannot be used."""

    exit_code = 2


class ModelError(RemaskError):
    """A checkpoint is missing, damaged or unsupported."""

    exit_code = 3


class EngineError(RemaskError):
    """The engine process could not start, died or answered nonsense."""

    exit_code = 4


class StorageError(RemaskError):
    """The disk or a folder refuses to take what has to be written."""

    exit_code = 5


def _kinds(kind: type[RemaskError]) -> Iterator[type[RemaskError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
