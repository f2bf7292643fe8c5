"""Everything real: the server over stdio, its engine's process, the default model, a file on disk, and keystrokes."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from lsp_client import only_item

from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.positions import Unit

pytestmark = pytest.mark.model

GEOMETRY = '''\
"""Shapes und Größen: 你好 😀."""

import math


def circle_area(radius):
    """The area of a circle."""
    return math.pi * radius**2


def circle_circumference(radius):
    """The circumference of a circle."""
    return 2 * math.pi * radius


def square_area(side):
    """The area of a square."""
    return side * side


def rectangle_area(width, height):
    """The area of a rectangle."""
'''
TYPED = "    return width * "


async def type_and_complete(client: Any, document: Document, text: str) -> list[Any]:
    """Type at the end of the document, as fast as an editor lets one, asking for ghost text after each character."""
    waiting = []
    for version, character in enumerate(text, document.version + 1):
        end = document.position_at(len(document.normalised))
        document.apply([Change(character, end, end)], version)
        client.type(document.uri, version, end.line, end.column, character)
        end = document.position_at(len(document.normalised))
        waiting.append(client.start_completion(document.uri, end.line, end.column)[1])
    return [(await answer)["result"] for answer in waiting]


async def test_typing_gets_a_completion_that_makes_the_file_parse(connect: Any, tmp_path: Path) -> None:
    file = tmp_path / "geometry.py"
    file.write_text(GEOMETRY, encoding="utf-8")
    with pytest.raises(SyntaxError):
        ast.parse(GEOMETRY + TYPED)
    client = await connect("-m", "remask.cli", "lsp", "--dtype", "float32")
    await client.initialize(["utf-8"], options={"deadlineMs": 60_000})
    document = Document(file.as_uri(), "python", 1, GEOMETRY, Unit.UTF8)
    client.open(document.uri, GEOMETRY)

    answers = await type_and_complete(client, document, TYPED)

    assert not any(answers[:-1]), "each was overtaken by the next"
    text, place = only_item(answers[-1])
    start = Position(place["start"]["line"], place["start"]["character"])
    assert place["start"] == place["end"]
    document.apply([Change(text, start, start)], 99)
    assert ast.parse(document.text), "the file with the completion parses"
    assert document.text == GEOMETRY + TYPED + text
    assert await client.shut_down() == 0
    assert GEOMETRY not in client.log
