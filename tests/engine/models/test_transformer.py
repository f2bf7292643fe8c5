"""The transformer against the naive reference, with and without its cache."""

import pytest
import torch
from reference import reference_logits
from tiny import MASK, SHAPE, random_weights

from remask.contract.errors import ModelError
from remask.engine.evaluation.plain_pass import PlainTransformer
from remask.engine.models.matrix import fused
from remask.engine.models.passes import Pass
from remask.engine.models.transformer import Transformer

CPU = torch.device("cpu")


@pytest.fixture
def weights():
    return random_weights()


@pytest.fixture
def transformer(weights):
    return Transformer(SHAPE, weights)


def causal(count):
    return torch.ones(count, count, dtype=torch.bool).tril()


@pytest.mark.parametrize("count", [1, 2, 7, 33])
def test_causal_pass_equals_reference(weights, transformer, count):
    tokens = [(7 * i) % 256 for i in range(count)]
    got = transformer.logits(transformer.forward(Pass.causal(tokens, 0, CPU), transformer.new_cache()))
    torch.testing.assert_close(got, reference_logits(weights, SHAPE, tokens, causal(count)), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("cuts", [[1], [5], [3, 4, 9], list(range(1, 12))])
def test_prompt_read_in_pieces_equals_one_pass(weights, transformer, cuts):
    tokens = [(11 * i + 3) % 256 for i in range(12)]
    cache, start = transformer.new_cache(), 0
    for end in [*cuts, len(tokens)]:
        if end == start:
            continue
        hidden = transformer.forward(Pass.causal(tokens[start:end], start, CPU), cache)
        cache.advance(end - start)
        start = end
    want = reference_logits(weights, SHAPE, tokens, causal(len(tokens)))[-1]
    torch.testing.assert_close(transformer.logits(hidden[-1:])[0], want, atol=1e-4, rtol=1e-4)


def test_canvas_sees_both_ways_and_the_context_does_not_see_the_canvas(weights, transformer):
    context, canvas = [5, 6, 7, 8, 9], [10, MASK, MASK, MASK]
    cache = transformer.new_cache()
    transformer.forward(Pass.causal(context, 0, CPU), cache)
    cache.advance(len(context))
    got = transformer.logits(transformer.forward(Pass.canvas(canvas, len(context), CPU), cache))
    visible = causal(9)
    visible[5:, 5:] = True
    want = reference_logits(weights, SHAPE, context + canvas, visible)[5:]
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def test_the_best_scores_are_exact_in_16_bits(weights):
    """Ties of rounding among the best tokens would make the output depend on how many rows a pass has."""
    narrow = {n: w.bfloat16() for n, w in weights.items()}
    hidden = (torch.randn(6, SHAPE.width, generator=torch.Generator().manual_seed(3)) * 8).bfloat16()
    got = Transformer(SHAPE, narrow).logits(hidden)
    want = Transformer(SHAPE, {n: w.float() for n, w in narrow.items()}).logits(hidden.float())
    best = want.topk(4, dim=-1)
    torch.testing.assert_close(got.gather(-1, best.indices), best.values, atol=0.2, rtol=0.01)
    assert got.topk(4).values.unique().numel() > 20  # not on the coarse grid of 16 bits


def test_several_canvases_in_one_pass_equal_each_alone(transformer):
    """Branches on one context: a block-diagonal mask keeps them apart, and no context is copied."""
    cache = transformer.new_cache()
    transformer.forward(Pass.causal([1, 2, 3, 4, 5], 0, CPU), cache)
    cache.advance(5)
    branches = [[6, MASK, MASK], [7, 8, MASK], [9, MASK, 10]]
    alone = [transformer.forward(Pass.canvas(branch, 5, CPU), cache) for branch in branches]
    apart = torch.block_diag(*(torch.ones(3, 3) for _ in branches)).bool()
    tokens = torch.tensor([t for branch in branches for t in branch])
    together = transformer.forward(Pass(tokens, torch.tensor([5, 6, 7] * 3), apart), cache)
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-5)


def test_branches_go_on_over_passes_and_never_see_each_other(transformer):
    """Their entries lie mixed behind the shared context; a mask wider than the pass hides those of the others."""
    cache = transformer.new_cache()
    transformer.forward(Pass.causal([1, 2, 3, 4, 5], 0, CPU), cache)
    cache.advance(5)
    first = torch.tensor([6, 7, 8, 9])  # branch a: 6 8; branch b: 7 9
    apart = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]).bool()
    transformer.forward(Pass(first, torch.tensor([5, 5, 6, 6]), apart), cache)
    cache.advance(4)
    later = torch.tensor([[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]).bool()
    together = transformer.forward(Pass(torch.tensor([10, 11]), torch.tensor([7, 7]), later), cache)
    for row, branch in enumerate(([6, 8, 10], [7, 9, 11])):
        alone = transformer.forward(Pass.causal([1, 2, 3, 4, 5, *branch], 0, CPU), transformer.new_cache())
        torch.testing.assert_close(together[row], alone[-1], atol=1e-4, rtol=1e-4)


def test_canvas_pass_leaves_the_cache_as_it_was(transformer):
    cache = transformer.new_cache()
    transformer.forward(Pass.causal([1, 2, 3], 0, CPU), cache)
    cache.advance(3)
    before = cache.snapshot()
    transformer.forward(Pass.canvas([4, MASK, MASK], 3, CPU), cache)
    assert cache.length == 3
    assert torch.equal(cache.snapshot(), before)


def test_cache_grows_without_losing_entries(transformer):
    tokens = [i % 256 for i in range(700)]
    whole, pieces = transformer.new_cache(), transformer.new_cache()
    transformer.forward(Pass.causal(tokens, 0, CPU), whole)
    whole.advance(700)
    for at in range(0, 700, 90):
        chunk = tokens[at : at + 90]
        transformer.forward(Pass.causal(chunk, at, CPU), pieces)
        pieces.advance(len(chunk))
    torch.testing.assert_close(pieces.snapshot(), whole.snapshot(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_pass_equals_the_plain_one(weights, dtype):
    narrow = {n: w.to(dtype) for n, w in weights.items()}
    fast, plain = Transformer(SHAPE, narrow), PlainTransformer(SHAPE, narrow)
    step = Pass.causal([(7 * i) % 256 for i in range(40)], 0, CPU)
    got, want = (t.forward(step, t.new_cache()).float() for t in (fast, plain))
    assert (got - want).norm() < (1e-5 if dtype == torch.float32 else 0.02) * want.norm()


def test_neighbours_in_memory_are_fused_without_a_copy():
    block = torch.arange(24.0).view(6, 4)
    assert fused(block[:2], block[2:3], block[3:]).data_ptr() == block.data_ptr()
    assert torch.equal(fused(block[3:], block[:3]), torch.cat([block[3:], block[:3]]))


def test_memory_that_is_not_there_is_said_with_its_size(transformer):
    cache = transformer.new_cache()
    transformer.forward(Pass.causal([1, 2, 3], 0, CPU), cache)
    cache.advance(3)
    with pytest.raises(ModelError, match=r"needs \d+\.\d+ GB for keys and values, which cpu does not have free"):
        cache.reserve(10**13)
    assert cache.length == 3


def test_a_cache_that_grew_during_a_pass_takes_restored_entries(transformer):
    cache = transformer.new_cache()
    transformer.forward(Pass.causal([i % 256 for i in range(300)], 0, CPU), cache)
    cache.advance(300)
    kept = cache.snapshot()
    cache.restore(kept[:, :, :, :200])
    assert torch.equal(cache.snapshot(), kept[:, :, :, :200])
