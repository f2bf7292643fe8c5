"""A part of an offered text that was taken at once is told from one that was typed."""

from __future__ import annotations

import pytest

from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.documents import Event
from remask.lsp_server.following import Following
from remask.lsp_server.positions import Unit
from remask.lsp_server.statistics import Statistics


def put(text: str, line: int, column: int) -> list[Change]:
    return [Change(text, Position(line, column), Position(line, column))]


def test_words_and_lines_are_followed_to_where_the_rest_goes() -> None:
    following = Following("größe😀 = [\n    1,\n]", Position(3, 4))
    assert following.taken_by(put("größe😀", 3, 4), Unit.UTF16) == 6
    assert following.taken_by(put(" ", 3, 11), Unit.UTF16) == 0, "a key"
    assert following.taken_by(put("= [\r\n    1,", 3, 12), Unit.UTF16) == 10
    assert following.taken_by(put("\n]", 4, 6), Unit.UTF16) == 0, "the end of it is no part"
    assert following.taken_by(put("x", 5, 1), Unit.UTF16) == 0


@pytest.mark.parametrize(
    "changes",
    [
        put("first", 0, 3),
        put("other", 0, 4),
        [Change("first", Position(0, 2), Position(0, 4))],
        [Change("first")],
        put("first", 0, 4) * 2,
        [],
    ],
)
def test_any_other_change_takes_nothing(changes: list[Change]) -> None:
    following = Following("first + second", Position(0, 4))
    assert following.taken_by(changes, Unit.UTF16) == 0
    assert following.taken_by(put("first", 0, 4), Unit.UTF16) == 5


@pytest.mark.parametrize("told", [False, True])
def test_a_part_is_counted_once_whether_or_not_the_client_tells(told: bool) -> None:
    counted = Statistics()
    document = Document("file:///a.py", "python", 1, "x = ")
    counted.offered(1, document.uri, Position(0, 4), ("first + second",))
    if told:
        counted.partly(1, 5, "first + second")
    counted.heard(Event.CHANGED, document, put("first", 0, 4))
    assert (counted.counts["partly"], counted.counts["characters_accepted"]) == (1, 5)
    counted.accepted(1, 0, None)
    assert counted.counts["characters_accepted"] == 14
