"""What the parser blames in an unfinished canvas: planted errors are found, true code never is."""

import ast
import re
import sysconfig
from pathlib import Path

import pytest

from remask.engine.judge.blame import BEFORE, TRIES, Blame
from remask.grammars import grammar_for_language
from remask.grammars.lexis import scan

PYTHON = grammar_for_language("python")
PREFIX = "def area(shapes):\n    total = 0\n    "
SUFFIX = "\n    return total\n"


def pieces_of(text):
    return re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text)


def judge(draft, *, open_=(), closed=False, prefix=PREFIX, suffix=SUFFIX, written=""):
    pieces = pieces_of(draft)
    committed = [p not in open_ for p in range(len(pieces))]
    return Blame(PYTHON, prefix, suffix, closed=closed).check(written, pieces, committed), pieces


@pytest.mark.parametrize(
    ("draft", "blamed"),
    [
        ("for s in shapes: total += s s * 2", " s"),
        ("total = (1, 2)) + 3", ")"),
        ("total = foo(a] + 1", "]"),
        ("class = 3\n    x", " ="),
    ],
)
def test_the_error_and_what_stands_before_it_are_taken_back(draft, blamed):
    found, pieces = judge(draft)
    assert pieces[found.remask[-1]] == blamed
    assert len(found.remask) <= BEFORE + 1
    assert list(found.remask) == list(range(found.remask[0], found.remask[-1] + 1))
    assert found.forbid == ()
    assert blamed.strip() in found.why


@pytest.mark.parametrize("draft", ["for s in shapes:", "total += sum(s for s in", "i", "x = 'a stri", "x = [", "if a"])
def test_a_beginning_of_a_program_holds_while_more_may_follow(draft):
    assert judge(draft)[0] is None


def test_the_place_of_a_break_is_told_whatever_is_committed():
    pieces = pieces_of("total = (1, 2)) + 3")
    blame = Blame(PYTHON, PREFIX, SUFFIX, closed=False)
    assert pieces[blame.breaks("", pieces)] == ")"
    assert blame.breaks("", pieces[:-4]) is None
    assert Blame(PYTHON, PREFIX, SUFFIX, closed=True).breaks("", pieces_of("total = (1")) is None  # broken behind it


def test_a_guess_in_the_blamed_window_is_forbidden_and_nothing_is_taken_back():
    draft = "for s in shapes: total += s s * 2"
    number = len(pieces_of("for s in shapes: total += s s")) - 1
    found, _ = judge(draft, open_={number - 1})
    assert found.remask == ()
    assert found.forbid == (number - 1,)


def test_guesses_outside_the_window_do_not_matter():
    found, _ = judge("for s in shapes: total += s s * 2", open_={0, 10})
    assert found.remask


def test_nothing_is_judged_before_anything_is_committed():
    draft = "total = (1, 2)) + 3"
    assert judge(draft, open_=range(20))[0] is None


def test_a_text_that_is_broken_before_the_cursor_is_not_judged():
    assert judge("x = 1 1", prefix="def f(:\n    y = = 2\n    ")[0] is None


def test_brackets_that_nest_too_deeply_are_left_to_the_gate(monkeypatch):
    def parse(*_):
        raise AssertionError("a parser takes a second here")

    monkeypatch.setattr("remask.engine.judge.blame.viable_prefix", parse)
    assert not Blame(PYTHON, "x = " + "([" * 25_000, "\n", closed=False).trusted


def test_in_a_string_nothing_is_judged():
    assert judge("class class ((", prefix='x = """\n')[0] is None


def test_what_the_prefix_lacks_is_not_the_canvas_s_fault():
    assert judge("1, 2", prefix="x = foo(")[0] is None


def test_a_bracket_that_the_canvas_leaves_open_is_blamed_where_the_suffix_follows():
    found, pieces = judge("total = sum(shapes", closed=True)
    assert [pieces[i] for i in found.remask] == ["("]
    assert judge("total = sum(shapes", closed=False)[0] is None
    assert judge("total = sum(shapes)", closed=True)[0] is None


def test_the_blame_widens_and_ends():
    """Whatever the model writes again, judging the same place comes to an end."""
    blame = Blame(PYTHON, PREFIX, SUFFIX, closed=False)
    pieces = pieces_of("first = 1\n    total = a + b + c + d d + e")
    sizes = []
    while (found := blame.check("", pieces, [True] * len(pieces))) is not None:
        sizes.append(len(found.remask))
        assert len(sizes) < 20
    assert len(sizes) == 3 * TRIES
    assert sizes == sorted(sizes)
    line = len(pieces_of("first = 1"))
    assert sizes[-1] == len(pieces) - line - len(pieces_of(" + e"))  # the line up to the error, and no more


def test_text_already_written_counts_and_is_not_taken_back():
    found, pieces = judge("b + c", written="x = a ")
    assert pieces[found.remask[0]] == "b"


def functions():
    found = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]:
        source = path.read_text("utf-8", "replace")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and 3 < node.end_lineno - node.body[0].lineno < 12:
                lines = source.splitlines(keepends=True)
                start, stop = node.body[0].lineno - 1, node.end_lineno
                found.append(("".join(lines[node.lineno - 1 : start]), "".join(lines[start:stop]), "\n\nx = 1\n"))
    return found[::7][:60]


@pytest.mark.parametrize("closed", [False, True])
def test_true_function_bodies_are_never_blamed(closed):
    for prefix, body, suffix in functions():
        pieces = pieces_of(body)
        for stop in range(4, len(pieces) + 1, 9) if not closed else [len(pieces)]:
            blame = Blame(PYTHON, prefix, suffix, closed=closed)
            assert blame.check("", pieces[:stop], [True] * stop) is None, (prefix, "".join(pieces[:stop]))


def test_most_doubled_tokens_are_found_where_they_stand():
    hits = trials = 0
    for prefix, body, suffix in functions():
        pieces = pieces_of(body)
        code = (i for i in range(4, len(pieces)) if not scan(PYTHON, prefix + "".join(pieces[:i])).inside)
        at = next((i for i in code if pieces[i].strip().isidentifier()), None)
        if at is None:
            continue
        broken = [*pieces[: at + 1], " spurious", *pieces[at + 1 :]]
        found = Blame(PYTHON, prefix, suffix, closed=True).check("", broken, [True] * len(broken))
        trials += 1
        hits += found is not None and (at + 1 in found.remask)
    assert trials > 30
    assert hits > 0.8 * trials
