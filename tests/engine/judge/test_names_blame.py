"""From unknown names to the positions that are masked again."""

import pytest

from remask.engine.judge.names import NamesJudge
from remask.engine.judge.names_blame import InTurn, NamesBlame, positions
from remask.grammars import grammar_for_language

PREFIX = "def f(x):\n    "


def blame():
    return NamesBlame(NamesJudge(grammar_for_language("python"), PREFIX, "\n"))


def test_the_tokens_of_an_unknown_name_are_taken_back_once():
    judge, pieces = blame(), ["return", " zo", "rp", " +", " x"]
    found = judge.check("", pieces, [True] * 5)
    assert (found.remask, found.forbid, found.why) == ((1, 2), (), "nothing defines zorp")
    assert judge.check("", pieces, [True] * 5) is None
    assert judge.check("", ["return", " zirp", ""], [True] * 3).remask == (1,)


def test_a_canvas_behind_written_text_is_blamed_for_its_own_names_only():
    judge = blame()
    assert judge.check("y = zorp\n    ", ["return", " y"], [True, True]) is None
    assert judge.check("é = 'é€'\n    ", ["return", " zorp", ""], [True] * 3).remask == (1,)


def test_a_name_that_began_before_the_canvas_is_taken_back_as_far_as_it_is_the_canvas_s():
    assert blame().check("return zo", ["rp", " + x"], [True, True]).remask == (0,)


def test_a_name_that_may_go_on_in_the_next_canvas_is_not_judged():
    assert blame().check("", ["return", " zo"], [True, True]) is None
    assert blame().check("", ["return", " zo", "()"], [True, True, True]).remask == (1,)


def test_guesses_are_not_judged():
    assert blame().check("", ["return", " zorp"], [True, False]) is None
    assert blame().check("", [], []) is None
    assert blame().check("", ["y", " =", " 1", "\n", " zorp"], [True, True, True, True, False]) is None


@pytest.mark.parametrize("end", ["\n", "\n    ", ""])
def test_a_line_that_is_finished_is_judged_before_the_canvas_is(end):
    pieces = ["y", " =", " zorp", end, " zirp"]
    assert blame().check("", pieces, [True, True, True, True, False]).remask == (2,)
    assert blame().check("", pieces, [True, False, True, True, True]) is None


def test_known_names_are_left_alone():
    assert blame().check("", ["y", " =", " x", "\n   ", " return", " y"], [True] * 6) is None


@pytest.mark.parametrize(
    ("span", "places"),
    [((0, 1), [0]), ((1, 3), [1]), ((0, 3), [0, 1]), ((2, 4), [1, 2, 3]), ((4, 9), []), ((-2, 0), [])],
)
def test_positions_count_bytes(span, places):
    assert positions(span, ["a", "é", "", "b"]) == places


def test_the_first_judge_that_finds_something_is_heard():
    nothing = InTurn()
    assert nothing.check("", ["zorp"], [True]) is None
    assert InTurn(nothing, blame()).check("", ["zorp", ""], [True, True]).remask == (0,)
