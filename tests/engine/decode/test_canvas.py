"""The canvas and its first commit rule, as pure functions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from remask.engine.decode.canvas import Canvas, commit_confident

MASK = 99


@pytest.mark.parametrize(
    ("probability", "open_", "threshold", "chosen"),
    [
        ([0.9, 0.2, 0.8], [1, 1, 1], 0.7, [1, 0, 1]),
        ([0.1, 0.3, 0.2], [1, 1, 1], 0.7, [0, 1, 0]),  # at least one
        ([0.99, 0.3, 0.2], [0, 1, 1], 0.7, [0, 1, 0]),  # committed positions do not count
        ([0.5, 0.5, 0.5], [1, 1, 1], 0.7, [1, 0, 0]),  # a tie goes left
        ([0.7, 0.1, 0.1], [1, 1, 1], 0.7, [1, 0, 0]),  # the bound itself is enough
        ([0.1, 0.1, 0.1], [1, 1, 1], 0.0, [1, 1, 1]),
    ],
)
def test_commit_confident(probability, open_, threshold, chosen):
    got = commit_confident(torch.tensor(probability), torch.tensor(open_, dtype=torch.bool), threshold)
    assert got.int().tolist() == chosen


@given(
    st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=20).filter(
        lambda rows: any(o for _, o in rows)
    ),
    st.floats(0, 1),
)
def test_always_commits_something_open_and_nothing_else(rows, threshold):
    open_ = torch.tensor([o for _, o in rows])
    chosen = commit_confident(torch.tensor([p for p, _ in rows]), open_, threshold)
    assert chosen.any()
    assert not (chosen & ~open_).any()


def test_canvas_fills_up():
    canvas = Canvas(3, MASK)
    assert canvas.tokens.tolist() == [MASK] * 3
    canvas.commit(torch.tensor([1, 2, 3]), torch.tensor([0.9, 0.1, 0.8]), torch.tensor([True, False, True]))
    assert canvas.tokens.tolist() == [1, MASK, 3]
    assert canvas.leading_run() == [1]
    canvas.commit(torch.tensor([7, 2, 7]), torch.tensor([0.0, 0.6, 0.0]), torch.tensor([False, True, False]))
    assert canvas.resolved
    assert canvas.leading_run() == [1, 2, 3]
    assert canvas.confidence.tolist() == pytest.approx([0.9, 0.6, 0.8])


def test_empty_canvas_is_resolved():
    assert Canvas(0, MASK).resolved
    assert Canvas(0, MASK).leading_run() == []
