"""Lines between right and wrong tokens, against counting by hand."""

import numpy as np
import pytest

from remask.engine.training.working_point import average_precision, choose, precision_recall, rank_area, strict

SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
WRONG = np.array([True, True, False, True, False, False])


def test_precision_and_recall_by_hand():
    assert precision_recall(SCORES, WRONG, 0.6) == pytest.approx((3 / 4, 1.0))
    assert precision_recall(SCORES, WRONG, 0.75) == pytest.approx((1.0, 2 / 3))
    assert precision_recall(SCORES, WRONG, 1.0) == (0.0, 0.0)


def test_areas_by_hand():
    assert average_precision(SCORES, WRONG) == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert rank_area(SCORES, WRONG) == pytest.approx(8 / 9)


def test_areas_equal_the_naive_ones():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, wrong = rng.integers(0, 8, 40) / 8, rng.random(40) < 0.4
        pairs = [(a > b) + (a == b) / 2 for a in scores[wrong] for b in scores[~wrong]]
        assert rank_area(scores, wrong) == pytest.approx(np.mean(pairs))
        points = [precision_recall(scores, wrong, t) for t in sorted(set(scores), reverse=True)]
        before, area = 0.0, 0.0
        for precision, recall in points:
            area, before = area + (recall - before) * precision, recall
        assert average_precision(scores, wrong) == pytest.approx(area)


def test_the_line_has_the_highest_recall_that_is_precise_enough():
    assert choose(SCORES, WRONG, 0.75).threshold == pytest.approx(0.6)
    assert choose(SCORES, WRONG, 0.8).threshold == pytest.approx(0.8)


def test_where_no_line_is_precise_enough_the_f_score_decides_and_it_is_said():
    line = choose(SCORES, ~WRONG, 0.9)
    assert "F0.5" in line.rule
    assert line.threshold == pytest.approx(0.4)


def test_the_strict_line_flags_no_more_than_its_share():
    right = np.linspace(0, 1, 101)
    for share in (0.0, 0.05, 0.5):
        assert (right >= strict(right, share)).mean() <= share
    assert (right >= strict(right, 0.05)).sum() == 5
    assert strict(np.zeros(0), 0.1) == 0.0


@pytest.mark.parametrize("wrong", [np.zeros(4, bool), np.ones(4, bool)])
def test_one_sided_labels_give_no_nonsense(wrong):
    scores = np.array([0.1, 0.2, 0.2, 0.3])
    assert rank_area(scores, wrong) == 0.5
    assert average_precision(scores, wrong) == float(wrong.any())
    assert 0 < choose(scores, wrong, 0.8).threshold < 1
