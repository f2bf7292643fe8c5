"""Text metrics against naive references and values worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.engine.evaluation.metrics import (
    edit_similarity,
    exact_match,
    interval,
    kept_characters,
    levenshtein,
    parses,
    percentile,
)

TEXTS = st.text("ab c\né", max_size=14)


def naive_levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, row = row, [i]
        for j, y in enumerate(b):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y)))
    return row[-1]


@given(TEXTS, TEXTS)
def test_levenshtein_equals_the_plain_table(a, b):
    assert levenshtein(a, b) == naive_levenshtein(a, b)


def test_levenshtein_of_texts_longer_than_a_machine_word():
    a, b = "return value + offset\n" * 20, "return values - offset\n" * 19
    assert levenshtein(a, b) == naive_levenshtein(a, b)


@pytest.mark.parametrize(
    ("predicted", "truth", "similarity"),
    [("", "", 1.0), ("abc", "", 0.0), ("kitten", "sitting", 1 - 3 / 7), ("x = 1  \n", "x = 1", 1.0)],
)
def test_edit_similarity(predicted, truth, similarity):
    assert edit_similarity(predicted, truth) == pytest.approx(similarity)


def test_exact_match_looks_past_white_space_at_the_end_only():
    assert exact_match("x = 1", "x = 1\n")
    assert not exact_match(" x = 1", "x = 1")


@pytest.mark.parametrize(
    ("predicted", "truth", "kept"),
    [
        ("total += price", "total += price", 14),
        ("total += cost", "total += price", 9),  # all but the last name
        ("abcdef", "fedcba", 0),  # single characters in common are no survival
        ("", "x", 0),
        ("a b", "b a", 1),
        ("items.append(x)\n", "items.append(y)", 14),
    ],
)
def test_kept_characters(predicted, truth, kept):
    assert kept_characters(predicted, truth) == kept


@given(TEXTS, TEXTS)
def test_no_more_is_kept_than_there_is(predicted, truth):
    assert 0 <= kept_characters(predicted, truth) <= min(len(predicted.rstrip()), len(truth.rstrip()))


@pytest.mark.parametrize(
    ("language", "text", "whole"),
    [
        ("python", "def f():\n    return 1\n", True),
        ("python", "def f():\nreturn 1\n", False),
        ("python", 'x = "\\d"\n', True),  # a warning is no error
        ("python", "x = 1\0", False),
        ("python", "(" * 5000, False),
        ("go", "package a\n\nfunc f() int { return 1 }\n", True),
        ("go", "package a\n\nfunc f( { return 1 }\n", False),
        ("klingon", "nuqneH", False),
    ],
)
def test_parses(language, text, whole):
    assert parses(language, text) is whole


def test_percentile_is_one_of_the_values():
    assert percentile([5.0, 1.0, 3.0], 0.5) == 3.0
    assert percentile([float(i) for i in range(1, 101)], 0.95) == 95.0
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([], 0.5) == 0.0


def test_interval_holds_the_rate_and_narrows():
    low, high = interval(20, 100)
    assert (round(low, 3), round(high, 3)) == (0.133, 0.289)
    assert interval(0, 50)[0] == 0.0
    assert interval(0, 0) == (0.0, 1.0)
