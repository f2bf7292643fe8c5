"""A file and a place in it, as the command line names them: every way this can go wrong is one sentence."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from remask.contract.errors import InputError
from remask.contract.messages import MAX_DOCUMENT_BYTES
from remask.grammars import grammar_for_language, grammars, language_of
from remask.lsp_server.exclusions import may_hold_secrets


@dataclass(frozen=True, slots=True)
class Place:
    """A position as editors show it: line and column from 1, columns in code points."""

    line: int
    column: int

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read `LINE:COL`; raises InputError."""
        found = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text)
        if not found or not int(found[1]) or not int(found[2]):
            raise InputError(f"A position is LINE:COL with both from 1, like 12:5, not {text!r}.")
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text with line ends as newline characters, cut at a position."""

    path: Path
    language: str
    prefix: str
    suffix: str
    place: Place

    @classmethod
    def read(cls, path: Path, place: Place, language: str | None) -> Source:
        """Read the file and cut it; raises InputError for a file, a language or a place that cannot be used."""
        if may_hold_secrets(path.absolute().as_uri()):
            raise InputError(f"{path} is of a kind that may hold secrets, and Remask never reads such files.")
        text = read_text(path)
        offset = _offset(text, place, path)
        return cls(path, _language(path, language), text[:offset], text[offset:], place)


def read_text(path: Path) -> str:
    """A source file's text, line ends normalised; raises InputError for what is not one."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{path} is a folder; name a file in it.")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path} is not a regular file.")
        size = status.st_size
        if size > MAX_DOCUMENT_BYTES:
            limit = MAX_DOCUMENT_BYTES / 1e6
            raise InputError(f"{path} has {size / 1e6:.1f} MB, and Remask completes files up to {limit:.0f} MB.")
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if b"\0" in data:
        raise InputError(f"{path} is a binary file.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not valid UTF-8 (byte {error.start}).", advice="Save it as UTF-8 and try again."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _offset(text: str, place: Place, path: Path) -> int:
    lines = text.split("\n")
    if place.line > len(lines):
        raise InputError(f"{path} has {len(lines)} lines; there is no line {place.line}.")
    line = lines[place.line - 1]
    if place.column > len(line) + 1:
        raise InputError(
            f"Line {place.line} of {path} ends at column {len(line) + 1}; there is no column {place.column}."
        )
    return sum(len(earlier) + 1 for earlier in lines[: place.line - 1]) + place.column - 1


def _language(path: Path, named: str | None) -> str:
    known = ", ".join(sorted(g.name for g in grammars()))
    if named is not None:
        if grammar_for_language(named) is None:
            raise InputError(f"Remask does not know the language {named!r}; it knows {known}.")
        return named
    language = language_of(path)
    if language is None:
        raise InputError(
            f"Remask does not know the language of {path.name}; it knows {known}.", advice="Name one with --language."
        )
    return language
