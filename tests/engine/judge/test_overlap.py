"""Readings of a draft against the rest of the cursor's line."""

import pytest

from remask.engine.judge.overlap import up_to_rest, without_overlap


@pytest.mark.parametrize(
    ("draft", "suffix", "readings"),
    [
        ("a, b", "\nnext", ["a, b"]),
        ("a, b)", ")\n", ["a, b)", "a, b"]),
        ("str(x)", ")", ["str(x)", "str(x"]),  # the gate takes the first that holds
        ("a, b)", ")]\n", ["a, b)", "a, b"]),  # part of the closing marks
        ("* 2 + b", " + b\n", ["* 2", "* 2 + b"]),  # more than closing marks: a repetition for sure
        ("a", " + b", ["a"]),
        ("a)\nb)", ")", ["a)\nb)"]),  # several lines do not end on the cursor's line
        ("", ")", [""]),
        (")", ")", [")", ""]),
        ("x", "  \n)", ["x"]),
    ],
)
def test_readings(draft, suffix, readings):
    assert without_overlap(draft, suffix) == readings


@pytest.mark.parametrize(
    ("draft", "suffix", "shorter"),
    [
        ("name}!`);", "}`);\n", ["name"]),
        ('utf-8", errors="x").read()', '")\n', ['utf-8", errors="x', "utf-8", 'utf-8", errors=']),
        ("f(a)\n)", ")", ["f(a", "f(a)\n"]),
        ("a + b", " + b\n", []),  # no closing mark
        (").x", ")", []),  # nothing stands before it
        ("a", "", []),
    ],
)
def test_beginnings_up_to_what_stands_behind_the_cursor(draft, suffix, shorter):
    assert up_to_rest(draft, suffix) == shorter


def test_few_places_are_looked_at():
    assert len(up_to_rest("a)" * 1_000, ")")) < 10
