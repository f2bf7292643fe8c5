"""What goes with a function that is to be filled: the types that its signature names."""

from __future__ import annotations

from pathlib import Path

import pytest

from remask.lsp_server.definitions import Definition
from remask.lsp_server.folders import Folders
from remask.lsp_server.function_context import MAX_TYPES, function_snippets
from remask.lsp_server.index import Index


def test_no_more_types_are_searched_for_than_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def find(_: Index, name: str, beside: Path | None) -> list[tuple[Path, Definition]]:
        searched.append(name)
        return [] if name == "Absent" else [(tmp_path / f"{name}.py", Definition(name, f"class {name}:"))]

    monkeypatch.setattr(Index, "find", find)
    names = [f"Type{number}" for number in range(MAX_TYPES + 3)]
    signature = f"def Make(own: Make, none: Absent, {', '.join(f'a: {name}, b: {name}' for name in names)}):"
    index = Index(lambda *_: False)
    found = function_snippets("Make", signature, None, index, Folders())
    assert [one.text for one in found] == [f"class {name}:" for name in names[:MAX_TYPES]]
    assert searched == ["Absent", *names[:MAX_TYPES]]
