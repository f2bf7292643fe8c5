"""The standard library of the interpreter that runs: source that is there already. Not pinned by a hash."""

from __future__ import annotations

import platform
import sysconfig
from collections.abc import Iterator
from pathlib import Path

LEFT_OUT = {"site-packages", "dist-packages", "__pycache__", "lib2to3", "idlelib", "ensurepip", "turtledemo"}


def read_stdlib() -> Iterator[tuple[str, bytes]]:
    """Path and bytes of each module, in the order of the paths."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if LEFT_OUT.isdisjoint(inside.parts) and path.is_file():
            yield inside.as_posix(), path.read_bytes()


def stdlib_version() -> str:
    """The interpreter's version, for the manifest."""
    return platform.python_version()
