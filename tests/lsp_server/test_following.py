"""A part of an offered text that was taken at once is told from one that was typed."""

from __future__ import annotations

import datetime

import pytest

from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.documents import Event
from remask.lsp_server.following import Following
from remask.lsp_server.positions import Unit
from remask.lsp_server.statistics import Statistics, read_statistics


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


def typed(text: str, column: int = 4, row: int = 0) -> list[list[Change]]:
    return [put(one, row, column + at) for at, one in enumerate(text)]


def is_finished(following: Following, changes: list[list[Change]]) -> bool:
    for one in changes:
        assert not following.taken_by(one, Unit.UTF16), "nothing of it was taken at once"
    return following.finished


def test_a_text_is_finished_when_its_last_character_is_typed() -> None:
    following = Following("first", Position(0, 4))
    assert not is_finished(following, typed("firs"))
    assert is_finished(following, [put("t", 0, 8)])


def test_another_text_does_not_finish_it() -> None:
    assert not is_finished(Following("first", Position(0, 4)), typed("fixed"))
    assert not is_finished(Following("first", Position(0, 4)), [])


def test_a_slip_that_is_mended_is_forgiven() -> None:
    slip = [Change("", Position(0, 7), Position(0, 8))]
    assert is_finished(Following("größe", Position(0, 4)), [*typed("gröx"), slip, *typed("ße", 7)])
    back = [Change("", Position(0, 6), Position(0, 8))]
    face = put("😀", 0, 6)
    assert is_finished(Following("ab😀c", Position(0, 4)), [*typed("ab"), face, back, face, put("c", 0, 8)])


def test_brackets_that_the_editor_closes_are_part_of_it() -> None:
    following = Following("f(a)", Position(0, 4))
    assert is_finished(following, [*typed("f"), put("()", 0, 5), *typed("a", 6)])
    following = Following("f(a) + 1", Position(0, 4))
    assert not is_finished(following, [*typed("f"), put("()", 0, 5), *typed("a", 6)])
    assert is_finished(following, typed(" + 1", 8)), "the closing bracket was stepped over without a change"


def test_a_line_end_and_the_indentation_that_comes_with_it_are_one_key() -> None:
    following = Following("a:\n    b", Position(0, 4))
    assert is_finished(following, [*typed("a:"), put("\r\n    ", 0, 6), *typed("b", 4, 1)])


def test_what_was_typed_by_hand_is_not_rejected() -> None:
    counted = Statistics()
    document = Document("file:///a.py", "python", 1, "x = ")
    counted.offered(1, document.uri, Position(0, 4), ("first",))
    for change in typed("first"):
        counted.heard(Event.CHANGED, document, change)
    counted.offered(2, document.uri, Position(0, 9), (" + 1",))
    counted.heard(Event.CLOSED, document, [])
    assert not counted.counts, "they are in the file"
    today = read_statistics()[datetime.date.today().isoformat()]
    assert (today["offered"], today["accepted"], today["typed"], today["rejected"]) == (2, 0, 1, 1)


def test_what_was_taken_is_accepted_though_its_text_is_there() -> None:
    counted = Statistics()
    document = Document("file:///a.py", "python", 1, "x = ")
    counted.offered(1, document.uri, Position(0, 4), ("1",))
    counted.heard(Event.CHANGED, document, put("1", 0, 4))
    counted.accepted(1, 0, None)
    counted.heard(Event.CLOSED, document, [])
    today = read_statistics()[datetime.date.today().isoformat()]
    assert (today["accepted"], today["typed"], today["rejected"]) == (1, 0, 0)
