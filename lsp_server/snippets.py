"""Stub."""

from __future__ import annotations

from typing import Any


class Snippets:
    """Stub."""

    def __init__(self, workspace: Any) -> None:
        pass

    def ready(self, key: str) -> tuple[Any, ...]:
        return ()

    def heard(self, *_: Any) -> None:
        pass

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def visited(self, uri: str) -> None:
        pass

    def folders_changed(self) -> None:
        pass

    def files_changed(self, uris: list[str]) -> None:
        pass

    def for_function(self, key: str, name: str) -> tuple[Any, ...]:
        return ()
