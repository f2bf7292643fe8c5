"""The network that learns computes what the engine's transformer computes, whatever the family."""

import dataclasses

import pytest
import torch
from tiny import SHAPE, random_weights
from training import RECIPE, batches, network

from remask.engine.models.passes import Pass
from remask.engine.models.transformer import Transformer
from remask.engine.training.network import Network
from remask.engine.training.objective import learn, measure, read

SHAPES = {
    "llama": SHAPE,
    "qwen2": dataclasses.replace(SHAPE, qkv_bias=True),
    "qwen3": dataclasses.replace(SHAPE, qk_norm=True),
    "untied": dataclasses.replace(SHAPE, tied_embeddings=False),
}


@pytest.mark.parametrize("family", SHAPES)
@pytest.mark.parametrize("rank", [0, 4])
def test_scores_equal_the_engine_s(family, rank):
    shape = SHAPES[family]
    weights = {n: w + 0.1 * torch.randn(w.shape) for n, w in random_weights(shape).items()}
    engine = Transformer(shape, weights)
    tokens = list(range(97, 117))
    step = Pass.causal(tokens, 0, engine.device)
    expected = engine.logits(engine.forward(step, engine.new_cache()))
    net = Network(shape, weights, rank=rank, dtype=torch.float32)
    bias = torch.zeros(20, 20).masked_fill_(~torch.ones(20, 20, dtype=torch.bool).tril(), -30_000)[None, None]
    hidden, taps = net.hidden(torch.tensor([tokens]), torch.arange(20)[None], bias, taps=(0,))
    assert torch.allclose(net.logits(hidden[0]), expected, atol=1e-4)
    assert taps[0].shape == (1, 20, shape.width)


def test_a_canvas_reads_as_the_engine_s_canvas_does():
    """Training and decoding must agree on what a canvas sees, or what is learned is of no use."""
    weights = random_weights()
    engine, net = Transformer(SHAPE, weights), network(rank=0)
    batch = batches().batch(0)
    hidden, _ = read(net, batch)
    width = 64
    size = batch.tokens.shape[1]
    for c in range(RECIPE.canvases):
        number = c * RECIPE.block
        anchor = int(batch.teacher_rows[number])
        start = anchor - int(batch.positions[0, anchor])
        before = batch.tokens[0, start:anchor].tolist()
        cache = engine.new_cache()
        if before:
            engine.forward(Pass.causal(before, 0, engine.device), cache)
            cache.advance(len(before))
        inputs = batch.tokens[0, width + number : width + number + RECIPE.block].tolist()
        expected = engine.logits(engine.forward(Pass.canvas(inputs, len(before), engine.device), cache))
        found = net.logits(hidden[width + number : width + number + RECIPE.block])
        assert torch.allclose(found, expected, atol=1e-4), (c, size)


def test_gradients_in_pieces_equal_those_of_the_whole():
    """The losses' gradients are taken piece by piece; they must be those of the summed loss."""
    recipe = dataclasses.replace(RECIPE, causal_rows=0)
    data = batches(recipe).batch(0)
    net = network(rank=0)
    learn(net, data, recipe)
    found = {n: w.grad.clone() for n, w in net.learned.items()}
    reference = network(rank=0)
    whole_loss(reference, data, recipe).backward()
    for name, weight in reference.learned.items():
        assert torch.allclose(found[name], weight.grad, atol=1e-4), name


def whole_loss(net, batch, recipe):
    from torch.nn import functional as F  # noqa: N812

    hidden, _ = read(net, batch)
    logits = net.logits(hidden)
    weights = torch.from_numpy(batch.weights)
    causal = F.cross_entropy(logits[batch.rows], torch.from_numpy(batch.targets), reduction="none")
    loss = (causal * weights).sum() / weights.sum()
    weights = torch.from_numpy(batch.canvas_weights)
    log_p = logits[batch.canvas_rows].log_softmax(-1)
    taught = logits[batch.teacher_rows].detach().softmax(-1)
    truth = F.nll_loss(log_p, torch.from_numpy(batch.canvas_targets), reduction="none")
    divergence = (taught * (taught.log() - log_p)).sum(-1)
    canvas = ((1 - recipe.distil) * truth + recipe.distil * divergence) * weights
    return loss + recipe.canvas_weight * canvas.sum() / weights.sum()


def test_measuring_learns_nothing():
    net = network()
    measure(net, batches().batch(0), RECIPE)
    assert all(w.grad is None for w in net.learned.values())


def test_only_the_pairs_of_matrices_learn_with_a_rank():
    net = network(rank=4)
    learn(net, batches().batch(0), RECIPE)
    assert all(("lora_A" in n or "lora_B" in n) for n in net.learned)
    assert not any(w.requires_grad for w in net.frozen.values())
