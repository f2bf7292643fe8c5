"""The gate's parts: the compilers, the lines, the cuts."""

import threading
import warnings

import pytest

from remask.engine.judge.compilers import clean, parses, python_parses
from remask.engine.judge.cuts import CLOSE_LOOK, cut_points, longest
from remask.engine.judge.statements import wrong_line
from remask.grammars import grammar_for_language

PYTHON = grammar_for_language("python")
GO = grammar_for_language("go")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("x = 1", True),
        ("\ufeffx = 1\n", True),
        ("x = '\\d'\n", True),
        ("1if a else 2\n", True),
        ("x = 1\ry = 2\r", True),
        ("\x0cx = 1\n", True),
        ("x = '\x00'\n", False),
        ("x = '\ud800'\n", False),
        ("x = (\n", False),
        ("-" * 200_000 + "1", False),
        ("x" + ".y" * 200_000, False),
        ("if a: pass\n" + "elif a: pass\n" * 20_000, False),
    ],
)
def test_python_parses_never_raises(text, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert python_parses(text) is expected


def test_parsing_leaves_the_stack_size_and_the_filters_alone():
    size, filters = threading.stack_size(), list(warnings.filters)
    python_parses("x = '\\d'")
    assert (threading.stack_size(), warnings.filters) == (size, filters)


def test_threads_may_parse_at_once():
    found = []
    threads = [threading.Thread(target=lambda n=n: found.append(python_parses("(" * n + ")" * n))) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_the_strictest_parser_has_the_word():
    assert clean(PYTHON, "f(a=1, b)\n")
    assert not parses(PYTHON, "f(a=1, b)\n")
    assert not clean(PYTHON, "if a:\n  b\n    c\n")
    assert parses(GO, "package a\n")
    assert not parses(GO, "package a\nfunc {\n")


@pytest.mark.parametrize(
    ("above", "draft", "below", "expected"),
    [
        ("x = ", "1", "\n", ""),
        ("x = ", "1 2", "\n", "a line that is no statement"),
        ("if a:\n    ", "b\n    c", "\n", ""),
        ("if a:\n    ", "b\n   c", "\n", "a line at a column that fits no block"),
        ("if a:\n    ", "b\n        c", "\n", "a line at a column that fits no block"),
        ("if a:\n    b\n", "elif c:", "\n    d\n", ""),
        ("try:\n    b\n", "except A as e:\n    raise", "\n", ""),
        ("match a:\n    ", "case [1, *_]:", "\n        b\n", ""),
        ("", "@a", "\ndef f(): pass\n", ""),
        ("", "@a b", "\ndef f(): pass\n", "a line that is no statement"),
        ("if a:\n    b\n", "else: c", "\n", ""),
        ("", "if a:", "\n    b\n", ""),
        ("", "if a b:", "\n    b\n", "a line that is no statement"),
        ("", "a", "\n    b\n", "a line at a column that fits no block"),
        ("x = a b\n", "c", "\nd e\n", ""),
    ],
)
def test_wrong_line(above, draft, below, expected):
    assert wrong_line(PYTHON, above + draft + below, len(above), len(above) + len(draft)) == expected


def test_only_python_is_judged_by_lines():
    assert wrong_line(GO, "a b c\n", 0, 5) == ""


@pytest.mark.parametrize(
    ("prefix", "draft", "kept"),
    [
        ("", "a\nb\nc", ["a\nb", "a"]),
        ("", "a; b", ["a"]),
        ("x = ", "f(\n  1)\nb", ["f(\n  1)", "f("]),
        ("", "a  # why\nb", ["a  # why"]),
        ("", "\n\n a\n\nb", ["\n\n a"]),
        ("", "a", []),
        ("", "", []),
    ],
)
def test_cut_points(prefix, draft, kept):
    assert [draft[:end] for end in cut_points(PYTHON, prefix, draft)] == kept


@pytest.mark.parametrize("good", [1, 5, CLOSE_LOOK, CLOSE_LOOK + 1, 100, 500, 999])
def test_longest_finds_the_last_that_holds_within_few_tries(good):
    tries = []
    points = list(range(1000, 0, -1))
    assert longest(points, lambda end: not tries.append(end) and end <= good) == good
    assert len(tries) <= CLOSE_LOOK + 24


def test_longest_of_nothing():
    assert longest([], lambda end: True) is None
    assert longest([3, 2, 1], lambda end: False) is None
