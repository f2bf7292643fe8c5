"""What a text is worth."""

import math
from types import SimpleNamespace

import pytest

from remask.contract.messages import Reason
from remask.engine.decode.policies import POLICIES
from remask.engine.decode.search.branches import Branch
from remask.engine.decode.search.found import Found
from remask.engine.decode.search.value import BROKEN_NATS, Aim, for_length, lines_of
from remask.engine.decode.search.weighing import Scales


@pytest.mark.parametrize(
    ("text", "lines"), [("x = 1\n", 1), ("", 1), ("\n \n", 1), ("x\n\n  y", 2), ("x\r\ny\r\n", 2), ("  return x", 1)]
)
def test_lines_that_hold_something_are_counted(text, lines):
    assert lines_of(text) == lines


def test_a_line_is_worth_all_its_tokens_and_more_lines_forgive_a_little():
    assert for_length(-3.0, 1) == -3.0
    assert -3.0 < for_length(-3.0, 2) < -1.5  # not so much that each further line pays


def test_holding_is_a_must_and_names_are_a_little():
    broken = Aim(holds=lambda text, reason: False).judged("x", Reason.END)
    unknown = Aim(unknown=lambda text: 1.0).judged("x", Reason.END)
    assert broken == -BROKEN_NATS
    assert -1.0 < unknown < 0.0
    assert Aim().judged("x", Reason.END) == 0.0


def text_of(text, sureness, *, ended=True, aim=None, wanted=1, policy="search"):
    request = SimpleNamespace(aim=aim, policy=POLICIES[policy], wanted=wanted)
    one = Found(0, Branch([0], list(sureness)), text=text, ended=ended)
    scales = Scales(request)
    if ended:
        scales.judge(one)
    return scales, one


def test_a_start_that_is_less_likely_than_a_whole_line_cannot_win():
    scales, whole = text_of("x = 1\n", [-1.0, -1.0])
    _, worse = text_of("y", [-2.1], ended=False)
    _, better = text_of("y", [-1.9], ended=False)
    assert scales.lacks(worse, scales.best([whole])) == pytest.approx(0.1)
    assert scales.lacks(better, scales.best([whole])) < 0


def test_a_start_is_hoped_to_become_as_long_as_the_best_text():
    scales, whole = text_of("a\nb\nc\n", [-3.0])
    _, start = text_of("a", [-2.9], ended=False)
    assert scales.lacks(start, scales.best([whole])) < 0


def test_what_may_not_be_shown_keeps_no_other_text_from_being_written():
    scales, broken = text_of("x = (\n", [-0.1], aim=Aim(holds=lambda text, reason: False))
    _, start = text_of("y", [-9.0], ended=False)
    assert scales.best([broken]) is None
    assert scales.lacks(start, None) == -math.inf


def test_where_several_texts_are_wanted_none_is_given_up():
    scales, whole = text_of("x = 1\n", [-0.1], wanted=3)
    assert scales.best([whole]) is None
