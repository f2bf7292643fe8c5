"""Candidates that are drawn side by side equal those drawn one after the other, in fewer passes."""

from dataclasses import replace

import pytest
from tiny import SHAPE, SPEC, ByteTokenizer, random_weights

from remask.contract.messages import CompletionRequest
from remask.engine.api import Engine
from remask.engine.decode.trace import Trace
from remask.engine.models.model import Model
from remask.engine.models.paged import PagedCache, PagePool
from remask.engine.models.spec import Layout, Regime
from remask.engine.models.transformer import Transformer

BLOCKS = replace(SPEC, regime=Regime.BLOCK_CAUSAL, shift=0, verifies=False, policy="confident", layout=Layout.FIM)
WHOLE = replace(BLOCKS, regime=Regime.BIDIRECTIONAL, layout=Layout.HOLE)


class Paged(Transformer):
    """The plain formulas over pages, which takes several sequences at once."""

    joins = True

    def __init__(self):
        super().__init__(SHAPE, random_weights(seed=3))
        self.pool = PagePool(SHAPE, dtype=self.dtype, device=self.device)
        self.passes = []

    def new_cache(self):
        return PagedCache(self.pool)

    def forward_all(self, steps, caches):
        self.passes.append(len(steps))
        return super().forward_all(steps, caches)


def engine_of(spec, transformer):
    return Engine(Model(spec, ByteTokenizer(), transformer, "tiny"))


def asked(**more):
    values = {"document": "a.py", "language": "python", "prefix": "x = 1\ny = ", "suffix": "\n", "max_tokens": 12}
    return CompletionRequest(**values | {"deadline_ms": 600_000, "candidates": 4} | more)


@pytest.mark.parametrize("spec", [BLOCKS, replace(BLOCKS, shift=1)], ids=["blocks", "shifted"])
def test_several_at_once_are_those_one_after_the_other(spec):
    together, alone = Paged(), Paged()
    alone.joins = False
    results = [engine_of(spec, one).complete(asked()) for one in (together, alone)]
    assert results[0].text == results[1].text
    assert results[0].others == results[1].others
    assert results[0].tokens == results[1].tokens
    assert max(together.passes) == 3
    assert not alone.passes
    assert together.pool.free == alone.pool.free  # the copies' pages are given back


def test_the_session_goes_on_as_if_nothing_was():
    transformer = Paged()
    engine = engine_of(BLOCKS, transformer)
    engine.complete(asked())
    again = engine.complete(asked(candidates=1))
    assert again.prompt.cached > 0
    assert (
        again.text == engine_of(BLOCKS, Transformer(SHAPE, random_weights(seed=3))).complete(asked(candidates=1)).text
    )


def test_where_every_pass_reads_the_whole_text_nothing_is_joined():
    transformer = Paged()
    assert engine_of(WHOLE, transformer).complete(asked(candidates=2, max_tokens=4)).text is not None
    assert not transformer.passes


def test_what_is_traced_is_drawn_one_after_the_other():
    transformer = Paged()
    engine_of(BLOCKS, transformer).complete(asked(), trace=Trace())
    assert not transformer.passes


def test_time_counts_once(monkeypatch):
    from remask.engine import candidates

    seen = []
    run = candidates.side_by_side
    monkeypatch.setattr(candidates, "side_by_side", lambda *a: seen.append(run(*a)) or seen[-1])
    result = engine_of(BLOCKS, Paged()).complete(asked())
    assert seen
    assert result.ms.decode <= result.ms.total


def test_a_processor_draws_one_after_the_other():
    assert not Transformer(SHAPE, random_weights()).joins
