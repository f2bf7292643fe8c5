"""Documents stay in step with the editor, whatever the text and the edits."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.positions import Unit, joined, size


def document(text: str, unit: Unit = Unit.UTF16) -> Document:
    return Document("file:///a.py", "python", 1, text, unit)


def edit(text: str, start: tuple[int, int], end: tuple[int, int], new: str, unit: Unit = Unit.UTF16) -> str:
    doc = document(text, unit)
    doc.apply([Change(new, Position(*start), Position(*end))], 2)
    return doc.text


# --- the naive reference: one flat string, every place found by counting -------------------------------------------


def naive_offset(text: str, line: int, column: int, unit: Unit) -> int:
    lines = re.split(r"(\r\n|\r|\n)", text)  # bodies at even places, their ends at odd ones
    if line * 2 >= len(lines):
        return len(text)
    offset = len("".join(lines[: line * 2]))
    for character in lines[line * 2]:
        column -= size(character, unit)
        if column < 0:
            break
        offset += 1
    return offset


def naive_edit(text: str, change: Change, unit: Unit) -> str:
    if change.start is None or change.end is None:
        return joined(change.text)
    places = [naive_offset(text, p.line, p.column, unit) for p in (change.start, change.end)]
    return joined(text[: min(places)] + change.text + text[max(places) :])


TEXT = st.text(alphabet="ab \t\n\r\f\v\x85\u2028é你😀e\u0301\ud83d\ude00", max_size=25)
PLACE = st.builds(Position, st.integers(0, 8), st.integers(0, 12))
CHANGE = st.one_of(st.builds(Change, TEXT, PLACE, PLACE), st.builds(Change, TEXT))


@settings(max_examples=400, deadline=None)
@given(TEXT, st.lists(CHANGE, max_size=8), st.sampled_from(Unit))
def test_incremental_edits_agree_with_the_naive_reference(text: str, changes: list[Change], unit: Unit) -> None:
    doc, reference = document(text, unit), joined(text)
    assert doc.text == reference
    for version, change in enumerate(changes, 2):
        doc.apply([change], version)
        reference = naive_edit(reference, change, unit)
        assert doc.text == reference
        assert doc._lines == document(reference, unit)._lines, "the lines are as if read anew"


@settings(deadline=None)
@given(TEXT, PLACE, st.sampled_from(Unit))
def test_a_place_splits_the_text_and_survives_the_way_there_and_back(text: str, place: Position, unit: Unit) -> None:
    doc = document(text, unit)
    prefix, suffix = doc.split_at(place)
    assert prefix + suffix == doc.normalised
    assert "\r" not in prefix + suffix
    clamped = doc.position(*doc.clamp(place))
    assert doc.offset_at(place) == len(prefix)
    assert doc.position_at(len(prefix)) == clamped


# --- cases that servers got wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_only_the_protocols_line_ends_end_a_line(separator: str) -> None:
    assert edit(f"a{separator}b\nsecond", (1, 0), (1, 0), "X") == f"a{separator}b\nXsecond"


@pytest.mark.parametrize(
    ("text", "start", "end", "new", "expected"),
    [
        ("abc", (0, 10), (0, 10), "X", "abcX"),  # past the end of a last line
        ("a\r\nb", (0, 2), (0, 2), "X", "aX\r\nb"),  # between CR and LF
        ("a\r\nb", (0, 99), (1, 0), "", "ab"),
        ("a\nb", (7, 0), (9, 9), "X", "a\nbX"),  # past the end of the file
        ("a😀b", (0, 2), (0, 2), "X", "aX😀b"),  # inside a surrogate pair
        ("", (0, 0), (0, 0), "a\n", "a\n"),
        ("a\n", (1, 0), (1, 0), "b", "a\nb"),
        ("a\nb\nc", (2, 1), (0, 1), "", "a"),  # start and end the wrong way round
        ("a\rb", (1, 0), (1, 0), "\n", "a\r\nb"),  # the new LF joins the CR before it
        ("öbc", (0, 1), (0, 1), "a", "öabc"),
    ],
)
def test_places_outside_the_text_are_clamped(
    text: str, start: tuple[int, int], end: tuple[int, int], new: str, expected: str
) -> None:
    assert edit(text, start, end, new) == expected


def test_a_change_without_a_range_replaces_everything_and_puts_the_document_in_step() -> None:
    doc = document("a\nb")
    doc.in_step = False
    doc.apply([Change("new")], 5)
    assert (doc.text, doc.version, doc.in_step) == ("new", 5, True)


def test_a_change_without_a_version_keeps_the_old_one() -> None:
    doc = document("a")
    doc.apply([Change("b", Position(0, 0), Position(0, 1))], None)
    assert (doc.text, doc.version) == ("b", 1)


def test_the_engine_sees_one_kind_of_line_end_and_no_lone_surrogate() -> None:
    doc = document("a\r\nb\rc\ud83d\nd")
    assert doc.split_at(Position(1, 1)) == ("a\nb", "\nc?\nd")


def test_a_surrogate_pair_typed_in_halves_becomes_one_character() -> None:
    doc = document("x")
    doc.apply([Change("\ud83d", Position(0, 1), Position(0, 1))], 2)
    doc.apply([Change("\ude00", Position(0, 2), Position(0, 2))], 3)
    assert doc.text == "x😀"


def test_a_keystroke_in_a_large_file_costs_little() -> None:
    doc = document("    value = compute(left, right)  # ünï\n" * 100_000)
    started = time.perf_counter()
    for version in range(1_000):
        doc.apply([Change("x", Position(50_000, 4), Position(50_000, 4))], version)
    assert (time.perf_counter() - started) / 1_000 < 0.002, "seconds for one keystroke"
