"""Cells are completed with the code of the others in view, at positions of their own."""

from __future__ import annotations

from typing import Any

import pytest
from lsp_client import at, only_item

BOOK = "file:///project/n.ipynb"
CELLS = [f"vscode-notebook-cell:/project/n.ipynb#{name}" for name in "abcd"]


def item(number: int, text: str, language: str = "python") -> dict[str, Any]:
    return {"uri": CELLS[number], "languageId": language, "version": 1, "text": text}


def cells(*numbers: int) -> list[dict[str, Any]]:
    return [{"kind": 2, "document": CELLS[number]} for number in numbers]


async def opened(inside: Any) -> Any:
    client = await inside("1")
    capabilities = await client.initialize(capabilities={"notebookDocument": {"synchronization": {}}})
    assert capabilities["notebookDocumentSync"]["notebookSelector"] == [{"notebook": "*"}]
    texts = [item(0, "import a\r\n"), item(1, "words", "markdown"), item(2, "x = "), item(3, "y = 2")]
    params = {
        "notebookDocument": {"uri": BOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": cells(0, 1, 2, 3)},
        "cellTextDocuments": texts,
    }
    client.notify("notebookDocument/didOpen", params)
    return client


def change(client: Any, **parts: Any) -> None:
    params = {"notebookDocument": {"uri": BOOK, "version": 2}, "change": {"cells": parts}}
    client.notify("notebookDocument/didChange", params)


async def test_a_cell_is_completed_between_the_others(inside: Any) -> None:
    """Report 32."""
    client = await opened(inside)
    assert only_item(await client.complete(CELLS[2], 0, 4)) == ("1", at(0, 4))
    (request,) = client.engine.requests
    assert (request.prefix, request.suffix) == ("import a\n\nx = ", "\ny = 2")


async def test_cells_that_change_move_and_go(inside: Any) -> None:
    client = await opened(inside)
    text = [{"document": {"uri": CELLS[2], "version": 2}, "changes": [{"text": "z", "range": at(0, 0)}]}]
    change(client, textContent=text)
    structure = {
        "array": {"start": 0, "deleteCount": 2, "cells": []},
        "didClose": [{"uri": CELLS[0]}, {"uri": CELLS[1]}],
    }
    change(client, structure=structure)
    await client.complete(CELLS[2], 0, 5)
    assert client.engine.requests[-1].prefix == "zx = "
    change(client, structure={"array": {"start": 1, "deleteCount": 0, "cells": cells(0)}, "didOpen": [item(0, "new")]})
    await client.complete(CELLS[2], 0, 4)
    assert client.engine.requests[-1].suffix == " \nnew\ny = 2"
    client.notify("notebookDocument/didClose", {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": []})
    assert await client.complete(CELLS[2], 0, 5) is None


async def test_texts_change_although_the_order_of_the_cells_cannot_be_read(inside: Any) -> None:
    client = await opened(inside)
    text = [{"document": {"uri": CELLS[2], "version": 2}, "changes": [{"text": "z", "range": at(0, 0)}]}]
    change(client, structure={"array": {"start": -1, "deleteCount": 0}}, textContent=text)
    assert await client.complete(CELLS[2], 0, 5)
    assert client.engine.requests[-1].prefix.endswith("zx = ")


async def test_nothing_is_offered_in_cells_of_which_a_change_was_lost(inside: Any) -> None:
    client = await opened(inside)
    lost = {"document": {"uri": CELLS[2], "version": 2}, "changes": [{"text": "z", "range": at(0, 0)}]}
    change(client, textContent=["nonsense", lost])
    assert await client.complete(CELLS[2], 0, 4) is None
    change(client, textContent=[{"document": {"uri": CELLS[2], "version": 3}, "changes": [{"text": "zx = "}]}])
    assert await client.complete(CELLS[2], 0, 5)


@pytest.mark.parametrize(
    "params", [None, [], {}, {"notebookDocument": 5}, {"notebookDocument": {"uri": BOOK}, "change": {"cells": 5}}]
)
async def test_nonsense_is_no_error(inside: Any, params: Any) -> None:
    client = await opened(inside)
    for method in ("didOpen", "didChange", "didClose", "didSave"):
        if not (method == "didClose" and params and "uri" in str(params)) and method != "didOpen":
            client.notify(f"notebookDocument/{method}", params)
    change(client, structure={"array": {"start": -1, "deleteCount": 0}})
    change(client, textContent=[{"document": {"uri": CELLS[3]}, "changes": [{"range": 5}]}])
    assert only_item(await client.complete(CELLS[2], 0, 4))[0] == "1"
    assert not client.windows
