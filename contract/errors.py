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


class RemaskError(Exception):
    """Base of all errors that Remask raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".rstrip()


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
