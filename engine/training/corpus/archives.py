"""Reads the source files of a wheel, in memory and within bounds: nothing is unpacked, nothing is run."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from remask.contract.errors import InputError

MAX_MEMBERS = 60_000
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 300_000_000


def read_wheel(path: Path, extensions: tuple[str, ...] = (".py",)) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of each source file, in the order of the paths; larger files than a source file are left out.

    Raises InputError for a file that is no zip archive, has unsafe paths, or unpacks to more than any package does.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise InputError(f"The archive {path.name} has too many files ({len(members)}).")
            total = 0
            for member in sorted(members, key=lambda m: m.filename):
                if not member.filename.endswith(extensions) or member.file_size > MAX_FILE_BYTES:
                    continue
                _refuse_unsafe(path, member.filename)
                data = _bounded_read(archive, member)
                total += len(data)
                if total > MAX_TOTAL_BYTES:
                    raise InputError(f"The archive {path.name} unpacks to more than {MAX_TOTAL_BYTES / 1e6:.0f} MB.")
                yield member.filename, data
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise InputError(f"The archive {path.name} cannot be read: {error}.") from None
    except OSError as error:
        raise InputError(f"The archive {path.name} cannot be read: {error.strerror or error}.") from None


def _bounded_read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """At most the bound, whatever the directory of the archive promises."""
    with archive.open(member) as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise zipfile.BadZipFile(f"{member.filename} is larger than it says")
    return data


def _refuse_unsafe(path: Path, name: str) -> None:
    if name.startswith(("/", "\\")) or ":" in name or "\\" in name or ".." in name.split("/"):
        raise InputError(f"The archive {path.name} has a file with an unsafe path: {name!r}.")
