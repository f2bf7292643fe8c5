"""Training a draft head: the states it learns from, its loss against a plain one, learning, and what is written."""

from dataclasses import replace
from itertools import islice, pairwise

import pytest
import torch
from tiny import MASK, PREFIX, SHAPE, SUFFIX, VOCAB, random_weights
from torch.nn import functional as F  # noqa: N812
from training import split

from remask.contract.errors import InputError
from remask.engine.models.draft_head import FILE, advance, read_head, readout, rms, take_in
from remask.engine.models.passes import Pass
from remask.engine.models.transformer import Transformer
from remask.engine.training.draft_head import HeadRecipe, HeadTrainer, frequent_tokens, short_list_loss
from remask.engine.training.draft_states import States

RECIPE = HeadRecipe(steps=2, inner=16, listed=12, positions=20, taught=12, lr=1e-2, warmup=1)
MARKS = (SUFFIX, PREFIX, MASK)
WEIGHTS = random_weights()


def trainer(recipe=RECIPE):
    embedding, norm = WEIGHTS["model.embed_tokens.weight"], WEIGHTS["model.norm.weight"]
    tokens = frequent_tokens(split(), recipe.listed, MARKS)
    return HeadTrainer(embedding, embedding, norm, tokens, recipe, torch.float32)


def chunks(run, judged=False, seed=0):
    states = States(split(), Transformer(SHAPE, WEIGHTS), seed=seed, judged=judged)
    return states.chunks(run.recipe.positions + run.overlap, run.overlap)


def test_states_are_those_of_each_example_read_alone():
    data, transformer = split(), Transformer(SHAPE, WEIGHTS)
    examples = {}
    for row in range(len(data.tokens)):
        for segment in (0, 1):
            at = data.segments[row] == segment
            tokens = data.tokens[row][at].tolist()
            hidden = transformer.forward(Pass.causal(tokens, 0, torch.device("cpu")), transformer.new_cache())
            examples[tuple(tokens)] = hidden, data.roles[row][at] >= 2
    stream = islice(States(data, transformer, judged=True).chunks(30, 5), 12)
    held, count = [], 0
    for chunk in stream:
        assert len(chunk.tokens) == len(chunk.states) == len(chunk.best) == 30
        held += list(zip(*(getattr(chunk, n) for n in chunk.__slots__), strict=True))[5 if held else 0 :]
    starts = [i for i, one in enumerate(held) if one[1] == 0]
    for start, end in pairwise(starts):
        tokens = tuple(int(one[0]) for one in held[start:end])
        hidden, written = examples[tokens]
        torch.testing.assert_close(torch.stack([one[2] for one in held[start:end]]), hidden, atol=1e-5, rtol=1e-4)
        assert [bool(one[3]) for one in held[start:end]] == written.tolist()
        assert [int(one[4]) for one in held[start:end]] == transformer.logits(hidden).argmax(-1).tolist()
        count += 1
    assert count > len(examples)  # and on into the next epoch


def test_the_order_follows_from_the_seed():
    run = trainer()
    first, again, other = (next(chunks(run, seed=s)).tokens.tolist() for s in (1, 1, 2))
    assert first == again != other


def test_the_loss_and_its_gradient_are_those_of_a_plain_cross_entropy():
    rows, x = torch.randn(9, 6), torch.randn(5, 6, requires_grad=True)
    places = torch.stack([torch.randperm(9)[:3] for _ in range(5)])
    shares, weights = torch.randn(5, 3).softmax(-1), torch.rand(5)
    plain = x.detach().clone().requires_grad_()
    truth = torch.zeros(5, 9).scatter(1, places, shares)
    expected = (F.cross_entropy(plain @ rows.T, truth, reduction="none") * weights).sum()
    found = short_list_loss(x, rows, places, shares, weights)
    (3 * found).backward()
    (3 * expected).backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(x.grad, plain.grad, atol=1e-5, rtol=1e-4)


def test_a_draft_starts_at_a_state_and_takes_in_the_tokens_behind_it():
    """Place by place, against the formulas; and nothing crosses into another example."""
    run = trainer()
    for weight in run.weights.values():
        weight.data.normal_()
    chunk = next(chunks(run))
    _, drafted = run._drafts(chunk)
    embedding = WEIGHTS["model.embed_tokens.weight"]
    for place in range(RECIPE.positions):
        state = rms(chunk.states[place])
        for k in range(RECIPE.steps):
            state = advance(state, take_in(embedding[chunk.tokens[place + k + 1]], run.weights), run.weights)
            torch.testing.assert_close(drafted[k][place], readout(state, run.weights), atol=1e-4, rtol=1e-4)
            inside = run._inside(chunk, k, RECIPE.positions)[place]
            assert bool(inside) == (0 not in chunk.places[place + 1 : place + k + 3].tolist())


def test_it_learns_what_the_model_says():
    run, losses = trainer(), []
    held_out = list(islice(chunks(run, judged=True), 12))
    before = run.agreement(held_out)
    assert run.run(chunks(run), 80, 0.0, lambda r: losses.append(r.loss)) == 80
    after = run.agreement(held_out)
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    assert after.tokens_a_pass >= before.tokens_a_pass
    assert after.drafts == before.drafts > 0


def test_it_begins_with_least_squares():
    run = trainer()
    taken = list(islice(chunks(run), 30))
    run.begin(taken)
    embedding, known, next_ = WEIGHTS["model.embed_tokens.weight"], [], []
    for chunk in taken:
        states = rms(chunk.states)
        for place in range(len(states) - 1):
            if chunk.places[place + 1] == chunk.places[place] + 1:
                known.append(torch.cat([states[place], rms(embedding[chunk.tokens[place + 1]])]))
                next_.append(states[place + 1] - states[place])
    expected = torch.linalg.lstsq(torch.stack(known), torch.stack(next_), driver="gelsd").solution
    linear = torch.cat([run.weights[n][2 * RECIPE.inner :] for n in ("state", "input")], dim=1)
    residual = (torch.stack(known) @ linear.T - torch.stack(next_)).square().mean()
    best = (torch.stack(known) @ expected - torch.stack(next_)).square().mean()
    assert residual < 1.05 * best + 1e-4
    assert run.weights["state"].requires_grad


def test_the_same_seed_gives_the_same_head():
    found = []
    for _ in range(2):
        run = trainer()
        run.run(chunks(run), 5, 0.0)
        found.append(run.weights)
    assert all(torch.equal(found[0][n], found[1][n]) for n in found[0])


def test_agreement_counts_drafts_in_text_of_the_models_own():
    run = trainer(replace(RECIPE, steps=1))
    held_out = list(islice(chunks(run, judged=True), 12))
    drafts = right = 0
    for chunk in held_out:
        for place in range(RECIPE.positions):
            own = chunk.tokens[place + 1] == chunk.best[place]
            if chunk.written[place] and own and chunk.places[place + 2] == chunk.places[place] + 2:
                drafts += 1
                _, (x,) = run._drafts(chunk)
                right += int(run._best(x)[place] == chunk.best[place + 1])
    found = run.agreement(held_out)
    assert (found.drafts, found.by_place[0]) == (drafts, pytest.approx(right / drafts))
    assert found.tokens_a_pass == pytest.approx(1 + right / drafts)


def test_frequent_tokens_are_those_most_often_read():
    data = split()
    used = data.tokens[data.roles != 0].tolist()
    found = frequent_tokens(data, 4, MARKS).tolist()
    counts = sorted((used.count(t) for t in set(used) - set(MARKS)), reverse=True)
    assert sorted((used.count(t) for t in found), reverse=True) == counts[:4]


def test_a_trained_head_survives_its_file(tmp_path):
    run = trainer()
    run.save(tmp_path / FILE, {"agreement": 1})
    tensors, metadata = read_head(tmp_path / FILE, SHAPE.width, VOCAB)
    assert torch.equal(tensors["tokens"], run.tokens)
    assert torch.allclose(tensors["state"], run.weights["state"], atol=0.02)
    assert '"agreement": 1' in metadata["facts"]
    assert '"inner": 16' in metadata["facts"]
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("values", [{"steps": 0}, {"inner": 0}, {"lr": 2.0}, {"depth": 3}, {"steps": 1.5}])
def test_impossible_settings_are_refused(values):
    with pytest.raises(InputError, match="draft head"):
        HeadRecipe.from_dict(values)
