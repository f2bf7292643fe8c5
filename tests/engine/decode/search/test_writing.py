"""What a branch is drafted by: the text that it left, then the prompt."""

from types import SimpleNamespace

import pytest

from remask.engine.decode.lookup import LookupIndex
from remask.engine.decode.search.branches import Branch
from remask.engine.decode.search.found import Found
from remask.engine.decode.search.writing import DRAFT, Writer
from remask.engine.decode.stop import StopRules

NEWEST = 99  # the prompt's


def writer(prompt=(), room=50):
    index = LookupIndex({0})
    index.extend([*prompt, NEWEST])
    request = SimpleNamespace(budget=SimpleNamespace(max_tokens=room))
    rules = StopRules("", "", lambda draft: None)
    return Writer(request, rules, lambda tokens: "", (0,), SimpleNamespace(judge=lambda one: None), index)


def drafted(written, start, rest, **values):
    one = Found(1, Branch([NEWEST, *written]), None, start, list(rest))
    return writer(**values)._draft(one)


@pytest.mark.parametrize(
    ("written", "start", "draft"),
    [
        ([1, 2, 7], 2, [4, 5, 6, 8]),  # nothing written yet behind its own token: what stood there goes on
        ([1, 2, 7, 5], 2, [6, 8, 9]),  # it came back to it
        ([1, 2, 7, 30], 2, []),  # it went its own way
        ([1, 2, 7, 40, 41], 2, [42, 43, 44, 45]),  # which the prompt knows
        ([1, 2, 7, 41], 2, []),  # but one token says too little
    ],
)
def test_a_draft_comes_from_the_text_it_left_else_from_the_prompt(written, start, draft):
    assert drafted(written, start, [4, 5, 6, 8, 9], prompt=[40, 41, 42, 43, 44, 45, 46]) == draft
    assert len(draft) <= DRAFT


def test_a_draft_leaves_room_for_the_pass_s_own_token():
    assert drafted([1, 2, 7], 2, [4, 5, 6, 8], room=6) == [4, 5]


def test_looking_up_another_row_s_end_neither_needs_nor_changes_the_index():
    index = LookupIndex()
    index.extend([1, 2, 3, 4, 1, 2])
    assert index.after(2, 1, [9, 2, 3]) == ([4, 1], 2)
    assert index.after(2, 1, [7]) == ([], 0)
    assert index.after(2) == ([3, 4], 2)
