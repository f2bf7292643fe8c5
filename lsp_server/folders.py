"""The folders of the workspace, and where a document lies in them. Knows paths and URIs, opens no file.

There may be none, one in another, or two whose names begin alike; a document belongs to the innermost that holds it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from remask.lsp_server.uris import parse

_DRIVE = re.compile(r"^/([A-Za-z]):")


def path_of(uri: str) -> Path | None:
    """The file that a URI names on this machine, or None: untitled documents and remote ones have no file here."""
    parts = parse(uri)
    path = parts.path
    if parts.scheme != "file" or parts.authority not in ("", "localhost"):
        return None
    if not path.startswith("/") or not path.strip("/") or "\0" in path:
        return None
    if os.name == "nt":
        path = _DRIVE.sub(lambda found: f"{found[1].lower()}:", path)
    return Path(path)


def file_behind(uri: str) -> Path | None:
    """The file that a document of any scheme belongs to, if its URI tells.

    A cell's is its notebook, that of an older state (`git:`) is the file of today.
    """
    path = parse(uri).path
    named = path.startswith("/") and path.strip("/") and "\0" not in path
    return path_of(uri) or (Path(path) if named else None)


class Folders:
    """The open folders, in the client's order."""

    def __init__(self) -> None:
        self._paths: list[Path] = []

    def add(self, uri: str) -> None:
        """A folder was opened."""
        path = path_of(uri)
        if path is not None and path not in self._paths:
            self._paths.append(path)

    def remove(self, uri: str) -> None:
        """A folder was closed; one that is not open is none of our concern."""
        path = path_of(uri)
        if path in self._paths:
            self._paths.remove(path)

    def __iter__(self) -> Iterator[Path]:
        return iter(tuple(self._paths))

    def holding(self, path: Path) -> Path | None:
        """The innermost open folder that holds the path."""
        return next(iter(self.all_holding(path)), None)

    def all_holding(self, path: Path) -> list[Path]:
        """All open folders that hold the path, the innermost first."""
        holders = [folder for folder in self._paths if path.is_relative_to(folder)]
        return sorted(holders, key=lambda folder: -len(folder.parts))

    def name_of(self, path: Path) -> str:
        """The path as the model may see it: relative to its folder, else the file's name alone."""
        folder = self.holding(path)
        return PurePosixPath(path.relative_to(folder) if folder else path.name).as_posix()
