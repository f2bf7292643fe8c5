"""The best tokens behind a row: the C pass's against all scores at once, with every kind of vocabulary and row."""

import math
from dataclasses import replace

import pytest
import torch
from tiny import SHAPE, random_weights

from remask.engine.models.checkpoint import quantise
from remask.engine.models.native import MOST_BEST, NativeTransformer, native_library
from remask.engine.models.passes import Best
from remask.engine.models.transformer import Transformer

STRIPE = 512  # tokens whose scores C holds at once
SIZES = [260, STRIPE, STRIPE + 1, 2 * STRIPE + 33, 3 * STRIPE - 31]

pytestmark = pytest.mark.skipif(native_library() is None, reason="no C compiler, or no integer dot products")


def native(vocab, scale=1.0):
    """A C pass whose scores are of a vocabulary of that size; `scale` of its output matrix."""
    weights = {}
    for name, w in random_weights(replace(SHAPE, vocab=vocab), seed=vocab).items():
        weights[name] = w
        if w.ndim == 2:
            weights[name], weights[f"{name}_scale"] = quantise(w * (scale if "embed" in name else 1.0))
    return NativeTransformer(replace(SHAPE, vocab=vocab), weights)


def assert_near(got, want, bound=1e-5):
    torch.testing.assert_close(torch.tensor(got), torch.tensor(want), atol=bound, rtol=bound)


def states(rows, seed=1):
    return torch.randn(rows, SHAPE.width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("vocab", SIZES)
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("count", [1, MOST_BEST])
def test_the_best_tokens_are_those_of_all_scores(vocab, rows, count):
    transformer, hidden = native(vocab), states(rows)
    first = Best.of(transformer.logits(hidden), 1).tokens[0][0]
    never = torch.tensor([0, vocab - 1, first])  # the ends, and what would be the best of a row
    got, want = transformer.best(hidden, never, count), Transformer.best(transformer, hidden, never, count)
    assert got.tokens == want.tokens
    assert [len(one) for one in got.likely] == [count] * rows
    assert_near(got.likely, want.likely)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 100.0])
def test_all_alike_or_nearly_certain(scale):
    """Of equals the lower token comes first; what cannot be told from impossible has no wrong sign of certainty."""
    transformer, hidden = native(2 * STRIPE + 33, scale), states(5)
    never = torch.arange(3)
    got = transformer.best(hidden, never, MOST_BEST)
    log_p = transformer.logits(hidden).index_fill(-1, never, -torch.inf).log_softmax(-1)
    assert_near(got.likely, log_p.gather(1, torch.tensor(got.tokens)).tolist(), 1e-4)
    assert max(max(one) for one in got.likely) <= 1e-5
    if scale == 0.0:
        assert got.tokens == [[3, 4, 5, 6]] * 5


def test_a_whole_stripe_out_of_reach_adds_nothing():
    transformer, hidden = native(2 * STRIPE), states(4)
    for never in (torch.arange(STRIPE), torch.arange(STRIPE, 2 * STRIPE)):
        got, want = transformer.best(hidden, never, 4), Transformer.best(transformer, hidden, never, 4)
        assert got.tokens == want.tokens
        assert_near(got.likely, want.likely)


def test_fewer_tokens_than_are_asked_for():
    transformer, hidden = native(STRIPE + 8), states(2)
    got = transformer.best(hidden, torch.arange(2, STRIPE + 8), 4)
    for tokens, likely in zip(*got, strict=True):
        assert {*tokens[:2]} == {0, 1}
        assert sum(math.exp(one) for one in likely[:2]) == pytest.approx(1.0)
        assert likely[2:] == [-math.inf] * 2


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_neither_the_rows_beside_it_nor_threads_change_a_row(threads):
    """To the last bit: how sure a token is does not tell how it was drafted."""
    transformer, hidden, never = native(3 * STRIPE - 31), states(20), torch.tensor([7])
    alone = [transformer.best(row[None], never, MOST_BEST) for row in hidden]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        together = transformer.best(hidden, never, MOST_BEST)
    finally:
        torch.set_num_threads(before)
    assert [one.tokens[0] for one in alone] == together.tokens
    assert [one.likely[0] for one in alone] == together.likely
