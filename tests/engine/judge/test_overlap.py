"""Readings of a draft against the rest of the cursor's line."""

import pytest

from remask.engine.judge.overlap import without_overlap


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
