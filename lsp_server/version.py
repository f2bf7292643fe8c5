"""Which Remask this is. Knows the installed package only."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """The version that is installed; "0" where the code runs without having been installed."""
    try:
        return version("remask")
    except PackageNotFoundError:
        return "0"
