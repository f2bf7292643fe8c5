"""A long typing session: the document is always the editor's, and nothing is shown that must not be."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from reference_lines import lines_of, place_of
from typing_session import Edit, first_texts, session

from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.engine.judge.finish import finish
from remask.engine.judge.gate import Gate
from remask.grammars import grammar_for_language
from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.positions import Unit

FILES = 10
EDITS = 2_000
ASK_EVERY = 5  # edits


def uri(file: int) -> str:
    return f"file:///project/file{file}.py"


def change_of(before: str, edit: Edit, unit: Unit) -> Change:
    if edit.whole:
        return Change(edit.after)
    start, end = place_of(before, edit.start, unit), place_of(before, edit.end, unit)
    return Change(edit.text, Position(*start), Position(*end))


@pytest.mark.parametrize("unit", Unit)
def test_the_document_is_the_editors_after_every_edit(unit: Unit) -> None:
    texts = first_texts(FILES)
    documents = [Document(uri(number), "python", 0, text, unit) for number, text in enumerate(texts)]
    for version, edit in enumerate(session(FILES, EDITS), 1):
        document = documents[edit.file]
        document.apply([change_of(texts[edit.file], edit, unit)], version)
        texts[edit.file] = edit.after
        assert document.text == edit.after
        assert document.line_count == len(lines_of(edit.after))
    assert {edit.file for edit in session(FILES, EDITS)} == set(range(FILES))


class Author:
    """An engine that writes what the author is about to, sometimes wrongly; the real gate has the last word."""

    def __init__(self) -> None:
        self.chance = random.Random(3)
        self.targets: dict[str, str] = {}
        self.passed: set[str] = set()  # documents with a text that passed the gate

    async def write(self, request: CompletionRequest) -> CompletionResult:
        for _ in range(self.chance.choice((0, 3, 30, 100))):
            await asyncio.sleep(0)
        target = self.targets[request.document].replace("\r\n", "\n").replace("\r", "\n")
        rest = target[len(request.prefix) :] if target.startswith(request.prefix) else "x = (1\n"
        draft = "\n".join(rest.split("\n")[: self.chance.choice((1, 1, 2, 4))])
        if self.chance.random() < 0.3:
            draft = self.chance.choice(("))", draft + " ((", "def (", "  \n", draft + draft, "'"))
        grammar = grammar_for_language("python")
        assert grammar is not None
        finished = finish(
            draft, Reason.END, request.prefix, request.suffix, Gate(grammar, request.prefix, request.suffix)
        )
        self.passed.add(request.prefix + finished.text + request.suffix)
        return CompletionResult(text=finished.text, reason=finished.reason, language="python")


def holds(author: Author, before: str, text: str, after: str) -> bool:
    """Whether the gate lets the text pass here; or it is the rest of one that has passed where it began."""
    if before + text + after in author.passed:
        return True
    grammar = grammar_for_language("python")
    assert grammar is not None
    return Gate(grammar, before, after).check(text).reason is None


@pytest.mark.parametrize(("unit", "seed"), [(Unit.UTF16, 1), (Unit.UTF8, 2), (Unit.UTF32, 3)])
async def test_nothing_is_shown_that_must_not_be(inside: Any, unit: Unit, seed: int) -> None:
    client = await inside("")
    author = Author()
    client.engine = FakeEngine(author.write)
    await client.initialize([unit.value], options={"speculate": True, "debounce": "off"})
    texts = first_texts(FILES)
    for number, text in enumerate(texts):
        client.open(uri(number), text)
    shown = silent = 0
    waiting: list[tuple[Edit, int, Any]] = []
    for version, edit in enumerate(session(FILES, EDITS, seed), 2):
        author.targets[uri(edit.file)] = edit.target
        event = change_of(texts[edit.file], edit, unit)
        client.change(uri(edit.file), version, [as_json(event)])
        texts[edit.file] = edit.after
        cursor = len(edit.after) if edit.whole else edit.start + len(edit.text)
        if version % ASK_EVERY < 2:
            line, column = place_of(edit.after, cursor, unit)
            waiting.append((edit, cursor, client.start_completion(uri(edit.file), line, column)[1]))
        if version % ASK_EVERY == 1:
            answered = await check(author, waiting, unit)
            shown, silent = shown + answered[0], silent + answered[1]
    assert shown > EDITS // ASK_EVERY // 4
    assert silent > EDITS // ASK_EVERY // 4
    assert client.engine.most == 1
    await client.error("test/unknown")
    for number, text in enumerate(texts):
        assert client.server.state.documents.get(uri(number)).text == text


async def check(author: Author, waiting: list[tuple[Edit, int, Any]], unit: Unit) -> tuple[int, int]:
    """How many answers there were with a text and without; each text holds in the version that it was given for.

    An older request may have been answered before the next edit came, or for it.
    """
    versions = [(edit, cursor) for edit, cursor, _ in waiting]
    shown = 0
    for number, (_, _, answer) in enumerate(waiting):
        result = (await answer)["result"]
        if result is not None:
            (item,) = result["items"]
            assert any(fits(author, item, edit, cursor, unit) for edit, cursor in versions[number:])
            shown += 1
    silent = len(waiting) - shown
    waiting.clear()
    return shown, silent


def fits(author: Author, item: dict[str, Any], edit: Edit, cursor: int, unit: Unit) -> bool:
    row, column = place_of(edit.after, cursor, unit)
    if item["command"]["arguments"][1] != uri(edit.file) or item["range"]["start"] != item["range"]["end"]:
        return False
    text = item["insertText"]
    if item["range"]["start"] != {"line": row, "character": column} or not text.strip() or "\r" in text:
        return False
    return holds(author, normalised(edit.after[:cursor]), text, normalised(edit.after[cursor:])) and not text.endswith(
        "\n"
    )


def normalised(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def as_json(change: Change) -> dict[str, Any]:
    if change.start is None or change.end is None:
        return {"text": change.text}
    start = {"line": change.start.line, "character": change.start.column}
    end = {"line": change.end.line, "character": change.end.column}
    return {"text": change.text, "range": {"start": start, "end": end}}
