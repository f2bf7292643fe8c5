"""The draft head: formulas against plain loops, learning, and files that do not fit."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from tiny import SHAPE, VOCAB
from training import RECIPE, batches, network, split

from remask.contract.errors import InputError, ModelError
from remask.engine.models.draft_head import FILE, advance, metadata_of, read_head, readout, shapes
from remask.engine.training.draft_head import HeadRecipe, HeadTrainer, frequent_tokens

HEAD = HeadRecipe(steps=2, inner=16, listed=12, lr=1e-2, warmup=1)


def trainer(recipe=HEAD):
    tokens = frequent_tokens(split(), recipe.listed, (257, 258, 259))
    return HeadTrainer(network(rank=0), tokens, batches(replace(RECIPE, canvases=2)), recipe)


def test_a_step_equals_its_formula():
    weights = {n: torch.randn(s) for n, s in shapes(8, 3, 5).items()}
    state, embedded = torch.randn(8), torch.randn(8)

    def norm(v):
        return v / (sum(float(x) ** 2 for x in v) / len(v) + 1e-6) ** 0.5

    joined = weights["state"] @ norm(state) + weights["input"] @ norm(embedded)
    gated = torch.stack([joined[i] / (1 + torch.exp(-joined[i])) * joined[3 + i] for i in range(3)])
    expected = state + weights["output"] @ gated
    assert torch.allclose(advance(state, embedded, weights), expected, atol=1e-4)
    assert torch.allclose(readout(expected, weights), norm(expected) * weights["norm"], atol=1e-4)


def test_it_learns_what_the_network_says():
    run, losses = trainer(), []
    before = run.agreement(batches(replace(RECIPE, canvases=2)), 3)
    run.run(60, 0.0, lambda r: losses.append(r.loss))
    after = run.agreement(batches(replace(RECIPE, canvases=2)), 3)
    assert len(losses) == 60
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    assert sum(after) > sum(before)


def test_the_same_seed_gives_the_same_head():
    found = []
    for _ in range(2):
        run = trainer()
        run.run(5, 0.0, lambda r: None)
        found.append(run.weights)
    assert all(torch.equal(found[0][n], found[1][n]) for n in found[0])


def test_the_network_learns_nothing():
    run = trainer()
    before = {n: w.clone() for n, w in run._network.learned.items()}
    run.run(3, 0.0, lambda r: None)
    assert all(torch.equal(w, before[n]) and w.grad is None for n, w in run._network.learned.items())


def test_drafts_never_cross_into_another_example():
    run = trainer()
    for step in range(5):
        batch = run._batches.batch(step)
        anchors, tokens, valid = run._places(batch)
        flat, width = batch.tokens.reshape(-1), batch.tokens.shape[1]
        positions = batch.positions.reshape(-1)
        for p, at in enumerate(anchors.tolist()):
            for k in range(HEAD.steps):
                if valid[k, p]:
                    assert at // width == (at + k + 2) // width
                    assert positions[at + k + 2] == positions[at] + k + 2
                    assert tokens[k, p] == flat[at + k + 1]


def test_frequent_tokens_are_those_most_often_read():
    data = split()
    used = data.tokens[data.roles != 0].tolist()
    found = frequent_tokens(data, 4, (257, 258, 259)).tolist()
    counts = sorted((used.count(t) for t in set(used) - {257, 258, 259}), reverse=True)
    assert sorted((used.count(t) for t in found), reverse=True) == counts[:4]


def test_a_head_survives_its_file(tmp_path):
    run = trainer()
    run.save(tmp_path / FILE, {"steps": 2})
    tensors, metadata = read_head(tmp_path / FILE, SHAPE.width, VOCAB)
    assert torch.equal(tensors["tokens"], run.tokens)
    assert torch.allclose(tensors["state"], run.weights["state"], atol=0.02)
    assert metadata["facts"] == '{"steps": 2}'


@pytest.mark.parametrize("change", ["width", "format", "tokens", "missing", "bytes"])
def test_a_head_that_does_not_fit_is_refused(tmp_path, change):
    tensors = {n: torch.zeros(s) for n, s in shapes(SHAPE.width, 4, 3).items()}
    tensors["tokens"] = torch.arange(3)
    metadata = metadata_of({})
    if change == "width":
        tensors["norm"] = torch.zeros(5)
    if change == "format":
        metadata["format"] = "0"
    if change == "tokens":
        tensors["tokens"] = torch.tensor([1, 2, VOCAB])
    if change == "missing":
        del tensors["input"]
    save_file(tensors, tmp_path / FILE, metadata)
    if change == "bytes":
        (tmp_path / FILE).write_bytes(b"not a file")
    with pytest.raises(ModelError, match="draft head"):
        read_head(tmp_path / FILE, SHAPE.width, VOCAB)


def test_impossible_sizes_are_refused():
    with pytest.raises(InputError, match="draft head's steps"):
        HeadRecipe(steps=0)
