"""What users of other completion servers reported, and the right behaviour: texts, units, places."""

from __future__ import annotations

from typing import Any

import pytest
from lsp_client import at, only_item

from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.positions import Unit

URI = "file:///project/a.py"
INVOKED = {"triggerKind": 1}


async def started(inside: Any, answer: Any, document: str, *, uri: str = URI, **options: Any) -> Any:
    client = await inside("")
    client.engine = FakeEngine(answer)
    await client.initialize(options.pop("encodings", None), options=options)
    client.open(uri, document)
    return client


async def shown(client: Any, line: int, column: int, **context: Any) -> str | None:
    answer = await client.complete(URI, line, column, **context)
    return only_item(answer)[0] if answer else None


def accepted(document: Document, item: dict[str, Any]) -> str:
    """The text once the editor has made the item's edit."""
    start, end = item["range"]["start"], item["range"]["end"]
    place = Position(start["line"], start["character"]), Position(end["line"], end["character"])
    document.apply([Change(item["insertText"], *place)], None)
    return document.text


@pytest.mark.parametrize("before", ["é = ", "你好 = ", "'😀' + ", "e\u0301 = ", "'👩‍💻' + "])
@pytest.mark.parametrize("unit", Unit)
async def test_accepting_after_wide_characters_splits_none(inside: Any, before: str, unit: Unit) -> None:
    """Reports 1, 2, 3."""
    client = await started(inside, "测试", before + "\r\nend", encodings=[unit.value])
    document = Document(URI, "python", 1, before + "\r\nend", unit)
    column = document.position(0, len(before)).column
    (item,) = (await client.complete(URI, 0, column))["items"]
    assert accepted(document, item) == before + "测试\r\nend"


@pytest.mark.parametrize(("unit", "column"), [(Unit.UTF8, 4), (Unit.UTF16, 3), (Unit.UTF32, 3)])
def test_typing_after_a_wide_character_stays_in_step(unit: Unit, column: int) -> None:
    """Report 4."""
    document = Document(URI, "python", 1, "öbc", unit)
    document.apply([Change("a", Position(0, column), Position(0, column))], 2)
    assert document.text == "öbca"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85"])
async def test_only_line_ends_end_a_line(inside: Any, separator: str) -> None:
    """Reports 5, 6."""
    client = await started(inside, "1", f"a{separator}b\nx =\n")
    client.type(URI, 2, 1, 3, " ")
    assert only_item(await client.complete(URI, 1, 4)) == ("1", at(1, 4))
    assert client.engine.requests[0].prefix == f"a{separator}b\nx = "


async def test_documents_without_a_name_or_with_the_same_one(inside: Any) -> None:
    """Report 7."""
    client = await started(inside, "1", "x = ", uri="file:///")
    client.open("file:///", "yy = ")
    client.open("", "zzz = ")
    assert only_item(await client.complete("file:///", 0, 5))[0] == "1"
    assert only_item(await client.complete("", 0, 6))[0] == "1"
    client.close_document("file:///")
    client.close_document("file:///")
    assert await client.complete("file:///", 0, 5) is None


async def test_ranges_that_are_missing_reversed_or_outside(inside: Any) -> None:
    """Report 8."""
    client = await started(inside, "1", "x = \n")
    far = {"line": 999, "character": 999}
    client.change(URI, 2, [{"text": "!", "range": {"start": far, "end": far}}])
    client.change(URI, 3, [{"text": "", "range": {"start": far, "end": {"line": 1, "character": 0}}}])
    client.change(URI, 4, [{"text": "y = "}])
    client.change(URI, 5, [{"range": at(0, 0)}, {"text": "z"}])
    client.change(URI, 6, [{"text": "w = "}])
    assert await shown(client, 0, 4) == "1"


async def test_the_model_never_sees_a_carriage_return(inside: Any) -> None:
    """Report 9."""
    client = await started(inside, "a\n    b", "def f():\r\n    \r\n    return 1\r\n")
    assert "\r" not in str(await shown(client, 1, 4))
    (request,) = client.engine.requests
    assert "\r" not in request.prefix + request.suffix


@pytest.mark.parametrize("indent", ["\t", "  ", "    ", "        "])
async def test_a_completion_is_indented_as_the_file_is(inside: Any, indent: str) -> None:
    """Reports 10, 11, 15, 21."""
    text = f"def f(a):\n{indent}b = 1\n{indent}"
    client = await started(inside, f"{indent}if b:\n        return a\n    return b", text)
    first, *rest = str(await shown(client, 2, len(indent))).split("\n")
    assert first == "if b:", "it starts at the cursor, with no indentation a second time"
    tabs = [line for line in rest if "\t" in line]
    assert len(tabs) == (len(rest) if indent == "\t" else 0)


@pytest.mark.parametrize(
    ("line", "column", "text", "wanted"),
    [
        ("f(q)", 3, "a, b)", "f(qa, b)"),
        ("f([])", 3, "1, 2])", "f([1, 2])"),
        ("open('')", 6, "a')", "open('a')"),
        ("f(g())", 4, "x))", "f(g(x))"),
        ("x = f();", 7, ";", "x = f();"),
    ],
)
async def test_auto_closed_brackets_are_not_doubled(
    inside: Any, line: str, column: int, text: str, wanted: str
) -> None:
    """Report 12."""
    client = await started(inside, text, line)
    found = await shown(client, 0, column) or ""
    assert line[:column] + found + line[column:] == wanted


async def test_a_brace_that_closes_the_block_on_the_next_line_is_not_doubled(inside: Any) -> None:
    """Report 13."""
    client = await started(inside, "return a;\n};", "f = () => {\n  \n};\n")
    client.open(URI, "f = () => {\n  \n};\n", "javascript")
    assert await shown(client, 1, 2) == "return a;"


@pytest.mark.parametrize(
    ("text", "document", "column", "left"),
    [
        ("a + b", "x =  + b", 4, "a"),
        ("offset", "x = set", 4, "offset"),
        ("a + 1", "x =  1", 4, "a + 1"),
        ("if a:\n    return 1\nelse:\n    return 1", "\nreturn 1", 0, "if a:\n    return 1\nelse:\n    return 1"),
    ],
)
async def test_only_exact_repetitions_of_what_follows_are_cut(
    inside: Any, text: str, document: str, column: int, left: str
) -> None:
    """Report 14."""
    client = await started(inside, text, document)
    assert await shown(client, 0, column) == left


async def test_typing_and_then_accepting_needs_no_engine(inside: Any) -> None:
    """Reports 16, 19."""
    client = await started(inside, "foobar", "")
    await client.complete(URI, 0, 0)
    client.type(URI, 2, 0, 0, "foob")
    assert only_item(await client.complete(URI, 0, 4)) == ("ar", at(0, 4))
    assert len(client.engine.requests) == 1


@pytest.mark.parametrize("document", ["", "\n", "x", "x\n", "x\r\n\r\n"])
async def test_every_item_has_a_range_inside_the_document(inside: Any, document: str) -> None:
    """Report 17."""
    client = await started(inside, "1", document)
    for line, column in ((0, 0), (99, 0), (0, 99), (99, 99)):
        answer = await client.complete(URI, line, column)
        _, span = only_item(answer)
        assert span["start"] == span["end"]
        assert span["start"]["line"] <= document.count("\n")


async def test_a_text_that_is_typed_to_its_end_leaves_nothing(inside: Any) -> None:
    """Report 18."""
    client = await inside("ab")
    await client.initialize()
    client.open(URI, "# wait")
    _, answer = client.start_completion(URI, 0, 6)
    await client.asked(1)
    client.type(URI, 2, 0, 6, "ab")
    await client.let_go()
    assert (await answer)["result"] is None, "null, and no empty text"


async def test_an_answer_is_for_the_place_where_the_cursor_is(inside: Any) -> None:
    """Reports 20, 42."""
    client = await inside("1")
    await client.initialize()
    client.open(URI, "x = # wait\ny = # wait")
    _, old = client.start_completion(URI, 0, 10)
    await client.asked(1)
    client.change(URI, 2, [{"text": "", "range": {"start": at(0, 0)["start"], "end": at(1, 0)["start"]}}])
    _, new = client.start_completion(URI, 0, 10)
    await client.let_go()
    assert (await old)["result"] is None
    assert only_item((await new)["result"]) == ("1", at(0, 10))


async def test_an_empty_line_in_the_middle_of_a_file_is_completed(inside: Any) -> None:
    """Report 22."""
    client = await started(inside, "y = 2", "x = 1\n\n\n\nz = 3\n")
    assert only_item(await client.complete(URI, 2, 0)) == ("y = 2", at(2, 0))
