"""Path settlement against trying every path."""

import itertools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.engine.decode.search.settle import disputes, settled, viterbi

NATS = st.floats(-9, 0)


@st.composite
def lattice(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    first = draw(st.lists(NATS, min_size=sizes[0], max_size=sizes[0]))
    rows = [(a, st.lists(NATS, min_size=b, max_size=b)) for a, b in pairwise(sizes)]
    steps = [draw(st.lists(row, min_size=a, max_size=a)) for a, row in rows]
    return first, steps


@given(lattice())
def test_viterbi_finds_the_best_of_all_paths(one):
    first, steps = one

    def score(path):
        return first[path[0]] + sum(step[a][b] for step, (a, b) in zip(steps, pairwise(path), strict=True))

    sizes = [len(first), *(len(step[0]) for step in steps)]
    best = max(score(path) for path in itertools.product(*map(range, sizes)))
    assert score(viterbi(first, steps)) == pytest.approx(best)


TEXTS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9).map(tuple), min_size=2, max_size=5)


@given(TEXTS)
def test_every_text_is_a_path_through_its_disputes(texts):
    lead, places = disputes(texts)
    for number, text in enumerate(texts):
        parts = [(*place.options[place.choice[number]], *place.after) for place in places]
        assert (*lead, *itertools.chain.from_iterable(parts)) == text
        for place in places:
            option = place.options[place.choice[number]]
            assert text[place.starts[number] :][: len(option)] == option
    for place in places:
        assert len(set(place.options)) == len(place.options) > 1


def cost(before, token):
    """Log p in a language of first order: of a token behind another."""
    return -((before * 7 + token * 3) % 11) / 2 - 0.1


def nats(tokens, start=0):
    return [cost(tokens[i - 1] if i else 99, tokens[i]) for i in range(start, len(tokens))]


@given(st.lists(st.integers(0, 3), min_size=3, max_size=3), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_where_tokens_depend_on_the_one_before_the_best_combination_is_found(a, b):
    """Three places that two texts may dispute, agreed tokens between: all eight combinations are tried by hand."""
    texts = [(50, x[0], 51, 10 + x[1], 52, 20 + x[2], 53) for x in (a, b)]

    def ask(questions):
        return [sum(nats([*texts[q.text][: q.kept], *q.tokens], q.kept)) for q in questions]

    path = settled(texts, [nats(t) for t in texts], ask)
    tried = [(50, x, 51, 10 + y, 52, 20 + z, 53) for x, y, z in itertools.product(*zip(a, b, strict=True))]
    assert sum(nats(path)) == pytest.approx(max(sum(nats(t)) for t in tried))


def test_texts_that_agree_settle_to_the_first_and_ask_nothing():
    assert settled([(1, 2), (1, 2)], [[-1.0, -1.0]] * 2, lambda questions: 1 / 0) == (1, 2)
