"""The accelerated forward pass, its kernels interpreted, against the plain one."""

from dataclasses import replace

import pytest
import torch
from tiny import MASK, SHAPE, random_weights

from remask.engine.evaluation.plain_pass import PlainTransformer
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run
from remask.engine.models.transformer import Pass

CPU = torch.device("cpu")
FLAGS = replace(SHAPE, qkv_bias=True, qk_norm=True, heads=6, kv_heads=3, layers=1)


@pytest.mark.parametrize("shape", [replace(SHAPE, layers=1), FLAGS], ids=["tiny", "flags"])
def test_prompt_blocks_and_canvas_equal_the_plain_pass(shape):
    weights = random_weights(shape)
    fast, plain = AcceleratedTransformer(shape, weights), PlainTransformer(shape, weights)
    ours, theirs = fast.new_cache(), plain.new_cache()
    start = 0
    for step in (
        Pass.causal([(7 * i) % 256 for i in range(70)], 0, CPU),
        Pass.block_causal([1, 2, 3, 4, 5], 70, 4, CPU),
        Pass.canvas([9, MASK, MASK], 75, CPU),
    ):
        torch.testing.assert_close(fast.forward(step, ours), plain.forward(step, theirs), atol=1e-4, rtol=1e-4)
        start += len(step.tokens)
        ours.advance(len(step.tokens))
        theirs.advance(len(step.tokens))
    torch.testing.assert_close(ours.snapshot(), theirs.snapshot(), atol=1e-4, rtol=1e-4)


def test_a_processor_takes_the_reference():
    assert not kernels_run(CPU)
