"""Re-noising: noise that falls with the cosine, spans by weakness, drafts that come back."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from remask.engine.decode.search.expand import KEPT, OTHERS, Rivals, noise, rejoined, span_width, weak_spans
from remask.engine.models.passes import Best


@given(st.integers(1, 30))
def test_noise_falls_from_all_to_none_slowly_at_first(steps):
    levels = [noise(step, steps) for step in range(steps + 1)]
    assert levels[0] == 1.0
    assert levels[-1] == pytest.approx(0.0, abs=1e-9)
    falls = [a - b for a, b in pairwise(levels)]
    assert all(fall > 0 for fall in falls)
    assert falls == sorted(falls)


@given(st.integers(1, 200), st.floats(0, 1))
def test_a_span_is_at_least_a_token_and_at_most_its_share(length, level):
    assert 1 <= span_width(length, level) <= max(1, math.ceil(length / 4))


@pytest.mark.parametrize("start", [0, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_spans_are_all_places_with_their_best_other_tokens_the_most_hopeful_first(seed, start):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(6, 12, generator=generator).log_softmax(-1)
    own = torch.randint(0, 12, (6,), generator=generator).tolist()
    rivals = Rivals()
    rivals.hear(
        Best.of(scores[start:4] * 1.0 + 3.0, OTHERS + 1)
    )  # heard in two passes; scores are log p but for a constant
    rivals.hear(Best.of(scores[max(start, 4) :], OTHERS + 1))
    sureness = [float(scores[place, token]) for place, token in enumerate(own)]
    found = weak_spans(rivals, own, sureness, 2, start)
    want = []
    for place in range(start, 6):
        best = sorted(range(12), key=lambda t: -float(scores[place, t]))[: OTHERS + 1]
        kept = sum(sureness[:place]) + KEPT * sum(sureness[place + 1 :])
        want += [(kept + float(scores[place, t]), place, t) for t in best if t != own[place]]
    assert {(s.place, s.token) for s in found} == {(place, token) for _, place, token in want}
    assert [s.hope for s in found] == pytest.approx(sorted((hope for hope, _, _ in want), reverse=True), abs=1e-4)
    assert all(s.doubt == pytest.approx(s.sureness - sureness[s.place], abs=1e-5) for s in found)
    assert all(s.sureness == pytest.approx(float(scores[s.place, s.token])) for s in found)


def test_of_two_places_as_weak_the_earlier_one_is_tried_first():
    rivals = Rivals()
    rivals.hear(Best.of(torch.tensor([[0.0, -1.0], [0.0, -1.0]]), 2))
    sureness = torch.tensor([[0.0, -1.0]]).log_softmax(-1)[0, 0].item()
    assert [s.place for s in weak_spans(rivals, [0, 0], [sureness] * 2, 1)] == [0, 1]


def test_a_token_out_of_reach_takes_no_place():
    rivals = Rivals()
    rivals.hear(Best.of(torch.tensor([[0.0, -math.inf, -math.inf]]), OTHERS + 1))
    assert weak_spans(rivals, [0], [0.0], 1) == []


@pytest.mark.parametrize(
    ("rest", "own", "draft"),
    [([5, 6, 7, 8], [9, 5], [6, 7]), ([5, 6], [6], []), ([5, 6], [1], []), ([], [1], []), ([5], [], [])],
)
def test_a_text_that_comes_back_is_drafted_on(rest, own, draft):
    assert rejoined(rest, own, 2) == draft
