"""Decodings side by side: each as if alone, their passes as one; what fails, fails alone."""

from contextlib import suppress
from functools import partial

import pytest
import torch
from tiny import SHAPE, random_weights

from remask.contract.errors import ModelError
from remask.engine.decode.lockstep import side_by_side
from remask.engine.models.kv import KVCache
from remask.engine.models.memory import shortage_said
from remask.engine.models.passes import Confidence, Pass
from remask.engine.models.transformer import Transformer

CPU = torch.device("cpu")


class Counting(Transformer):
    """Counts what is asked for together; at most `most` sequences fit."""

    def __init__(self, most=100):
        super().__init__(SHAPE, random_weights())
        self.passes, self.heads, self.most = [], [], most

    def forward_all(self, steps, caches):
        self.passes.append(len(steps))
        if len(steps) > self.most:
            raise torch.OutOfMemoryError("Tried to allocate 2 GiB")
        return super().forward_all(steps, caches)

    def logits(self, hidden):
        self.heads.append(len(hidden))
        return super().logits(hidden)


def greedy(start, count, transformer):
    """A little text of its own, token by token, some of it by logits and some by confidence."""
    cache, text, none = KVCache(SHAPE, dtype=torch.float32, device=CPU), [start], torch.tensor([], dtype=torch.int64)
    for number in range(count):
        hidden = transformer.forward(Pass.causal(text[-1:], cache.length, CPU), cache)
        cache.advance(1)
        made = transformer.confidence(hidden, none) if number % 2 else Confidence.of(transformer.logits(hidden))
        text.append(int(made.token))
    return text


def test_each_is_as_alone_and_their_passes_are_one():
    alone = [greedy(start, count, Transformer(SHAPE, random_weights())) for start, count in ((65, 4), (66, 7), (67, 4))]
    together = Counting()
    works = [partial(greedy, start, count) for start, count in ((65, 4), (66, 7), (67, 4))]
    assert side_by_side(together, works) == alone
    assert together.passes == [3] * 4 + [1] * 3
    assert together.heads == [3] * 4 + [1] * 3
    assert side_by_side(together, []) == []


def test_it_looks_like_the_transformer():
    real = Transformer(SHAPE, random_weights())

    def look(seen):
        assert (seen.device, seen.dtype, seen.activations) == (real.device, real.dtype, real.activations)
        assert seen.shape is real.shape
        hidden = torch.randn(2, SHAPE.width)
        assert torch.equal(seen.normed(hidden), real.normed(hidden))
        assert seen.best(hidden, torch.tensor([3])).tokens == real.best(hidden, torch.tensor([3])).tokens
        return seen.new_cache().length

    assert side_by_side(real, [look]) == [0]


def test_what_one_raises_is_raised_when_all_have_ended():
    together, ends = Counting(), []

    def fail(transformer):
        greedy(65, 2, transformer)
        raise ModelError("no")

    def finish(transformer):
        ends.append(greedy(66, 5, transformer))

    with pytest.raises(ModelError, match="no"):
        side_by_side(together, [fail, finish])
    assert len(ends[0]) == 6
    assert together.passes == [2, 2, 1, 1, 1]


@pytest.mark.parametrize(("most", "passes"), [(2, [4, 2, 2]), (1, [4, 2, 1, 1, 2, 1, 1])])
def test_where_memory_is_short_fewer_are_read_at_a_time(most, passes):
    works = [partial(greedy, 65 + n, 1) for n in range(4)]
    alone = [work(Transformer(SHAPE, random_weights())) for work in works]
    together = Counting(most)
    assert side_by_side(together, works) == alone
    assert together.passes == passes


def test_where_not_one_fits_each_is_told():
    told = []

    def tell(transformer):
        with suppress(ModelError), shortage_said(1):
            try:
                greedy(65, 1, transformer)
            except torch.OutOfMemoryError:
                told.append(1)
                raise

    side_by_side(Counting(0), [tell, tell])
    assert told == [1, 1]
