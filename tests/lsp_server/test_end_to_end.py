"""Everything real: the server over stdio, its engine's process, the default model, a file on disk, and keystrokes."""

from __future__ import annotations

import ast
import asyncio
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


STUB = GEOMETRY.replace(
    '''    """The area of a rectangle."""\n''', '''    """The area of a rectangle."""\n    pass\n'''
)
ROW = STUB[: STUB.index("    pass")].count("\n")


async def test_filling_a_function_gives_a_body_that_parses_or_nothing(connect: Any, tmp_path: Path) -> None:
    file = tmp_path / "geometry.py"
    file.write_text(STUB, encoding="utf-8")
    client = await connect("-m", "remask.cli", "lsp", "--dtype", "float32")
    await client.initialize(["utf-16"], options={"fillMaxTokens": 48, "fillDeadlineMs": 90_000, "fillCandidates": 2})
    client.open(file.as_uri(), STUB)
    argument = {"uri": file.as_uri(), "position": {"line": ROW, "character": 4}, "apply": False}
    params = {"command": "remask.fill", "arguments": [argument]}
    answer = await asyncio.wait_for(client.start_request("workspace/executeCommand", params)[1], 110)
    candidates = answer["result"]["candidates"]
    assert candidates, "the default model fills this one"
    for candidate in candidates:
        document = Document(file.as_uri(), "python", 1, STUB, Unit.UTF16)
        (edit,) = candidate["edit"]["changes"][file.as_uri()]
        places = [Position(edit["range"][end]["line"], edit["range"][end]["character"]) for end in ("start", "end")]
        document.apply([Change(edit["newText"], *places)], 2)
        function = ast.parse(document.text).body[-1]
        assert isinstance(function, ast.FunctionDef)
        assert (function.name, [argument.arg for argument in function.args.args]) == (
            "rectangle_area",
            ["width", "height"],
        )
    assert await client.shut_down() == 0
