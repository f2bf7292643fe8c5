"""The accelerated pass with int8 and float8 weights, its kernels interpreted, against the plain one in float32."""

from dataclasses import replace

import pytest
import torch
from tiny import MASK, SHAPE, random_weights

from remask.engine.evaluation.plain_pass import PlainTransformer
from remask.engine.models.accelerated import AcceleratedTransformer
from remask.engine.models.checkpoint import quantise
from remask.engine.models.inputs import Size
from remask.engine.models.matrix import FP8
from remask.engine.models.passes import Pass, Taps
from remask.engine.models.transformer import Transformer

CPU = torch.device("cpu")
FLAGS = replace(SHAPE, qkv_bias=True, qk_norm=True, layers=1, tied_embeddings=False)
kinds = pytest.mark.parametrize("kind", [torch.int8, FP8], ids=["int8", "fp8"])


def narrowed(shape, kind):
    """Weights as `read_weights` gives them in 8 bits, and the very same numbers as float32."""
    narrow, wide = {}, {}
    for name, weight in random_weights(shape).items():
        narrow[name] = wide[name] = weight
        if weight.ndim == 2:
            rows, scale = quantise(weight, dtype=kind)
            narrow |= {name: rows, f"{name}_scale": scale}
            wide[name] = rows.float() * scale[:, None]
    return narrow, wide


@kinds
def test_passes_of_every_kind_equal_the_plain_ones(kind):
    """A prompt longer than the kernel takes, blocks that are captured, taps, and torch where the kernels fail."""
    narrow, wide = narrowed(FLAGS, kind)
    fast, plain = AcceleratedTransformer(FLAGS, narrow), PlainTransformer(FLAGS, wide)
    torch_too = Transformer(FLAGS, narrow)
    fast._few = 64
    ours, theirs, also = fast.new_cache(), plain.new_cache(), torch_too.new_cache()
    steps = [Pass.causal([(7 * i) % 256 for i in range(70)], 0, CPU)]
    steps += [Pass.canvas([9, MASK, MASK], 70 + 3 * i, CPU) for i in range(3)]
    for step in steps:
        got, want = fast.forward(step, ours), plain.forward(step, theirs)
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(torch_too.forward(step, also), want, atol=1e-4, rtol=1e-4)
        for cache in (ours, theirs, also):
            cache.advance(len(step.tokens))
    assert fast._static.captured() == [Size(4, False)]
    torch.testing.assert_close(fast.logits(got), plain.logits(want), atol=1e-3, rtol=1e-4)
    taps = Taps((0,))
    fast.forward(Pass.canvas([1, 2], ours.length, CPU), ours, taps)
    assert taps.stacked().shape == (2, 1, FLAGS.width)
    assert fast._works


@kinds
def test_what_it_says_of_itself(kind):
    fast = AcceleratedTransformer(FLAGS, narrowed(FLAGS, kind)[0])
    assert fast.dtype == kind
    assert fast.activations == fast.new_cache().dtype == torch.float32
    assert fast.device == CPU


@kinds
def test_confidence_equals_that_of_the_logits(kind):
    narrow, wide = narrowed(FLAGS, kind)
    fast, plain = AcceleratedTransformer(FLAGS, narrow), Transformer(FLAGS, wide)
    hidden = torch.randn(5, FLAGS.width, generator=torch.Generator().manual_seed(2))
    got, want = (model.confidence(hidden, torch.tensor([3, 250])) for model in (fast, plain))
    assert torch.equal(got.token, want.token)
    for ours, theirs in zip(got[1:], want[1:], strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    assert fast._works


def test_a_card_computes_in_sixteen_bits_beside_int8_rows():
    narrow, wide = narrowed(FLAGS, torch.int8)
    card = {n: w if w.dtype == torch.int8 or n.endswith("_scale") else w.bfloat16() for n, w in narrow.items()}
    fast, plain = AcceleratedTransformer(FLAGS, card), PlainTransformer(FLAGS, wide)
    step = Pass.causal([1, 2, 3], 0, CPU)
    got = fast.forward(step, fast.new_cache())
    assert got.dtype == fast.new_cache().dtype == torch.bfloat16
    want = plain.forward(step, plain.new_cache())
    assert (got.float() - want).norm() < 0.02 * want.norm()
    assert fast._works
