"""The canvas: what is masked, committed and known without a gap."""

import pytest
import torch

from remask.engine.decode.canvas import Canvas

MASK = 99


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
