"""A vector is the difference of mean states, and says how well it tells the two kinds of text apart."""

from dataclasses import replace

import pytest
import torch
from tiny import PREFIX, SPEC, tiny_model

from remask.contract.errors import InputError
from remask.engine.models.passes import Pass, Taps
from remask.engine.models.spec import Layout, Regime
from remask.engine.training.steering import SKIPPED, WINDOW, make_steering, pieces_of

ONE, OTHER = ["aaaa bbbb aaaa bbbb", "abababababab"], ["(((((([[[[[[", "[(])[(])[(])[(])"]


def naive_mean(model, texts, layer):
    """One text after the other, one token more each time: the last row of every pass."""
    rows = []
    for text in texts:
        tokens = [PREFIX, *text.encode()]
        for end in range(SKIPPED + 1, len(tokens) + 1):
            taps = Taps((layer,))
            model.transformer.forward(
                Pass.causal(tokens[:end], 0, model.transformer.device), model.transformer.new_cache(), taps
            )
            rows.append(taps.states[0][-1])
    return torch.stack(rows).mean(0)


@pytest.mark.parametrize("layer", [0, 1])
def test_the_vector_is_the_difference_of_means(layer):
    model = tiny_model(3)
    made = make_steering(model, ONE, OTHER, layer, "base")
    want = naive_mean(model, ONE, layer) - naive_mean(model, OTHER, layer)
    torch.testing.assert_close(made.vector, want, atol=1e-4, rtol=1e-3)
    assert (made.layer, made.base) == (layer, "base")
    assert made.facts["tokens_with"] == sum(len(t) + 1 - SKIPPED for t in ONE)
    assert made.facts["told_apart"] == 1.0
    assert made.facts["size"] > 0


def test_long_texts_are_read_in_pieces():
    pieces = pieces_of(tiny_model(), ["x" * (WINDOW + 20), "short", "y" * WINDOW])
    assert [len(p) for p in pieces] == [1 + WINDOW, 21, 1 + WINDOW]


@pytest.mark.parametrize("regime", [Regime.BLOCK_CAUSAL, Regime.BIDIRECTIONAL, Regime.STRICT_CAUSAL])
def test_every_regime_reads_in_its_own_way(regime):
    model = tiny_model(3, replace(SPEC, regime=regime, layout=Layout.CHAT))
    assert make_steering(model, ONE, OTHER, 1, "").vector.isfinite().all()


def test_what_cannot_be_learned_is_refused():
    model = tiny_model()
    with pytest.raises(InputError, match="layer is 0 to 1 for tiny, not 2"):
        make_steering(model, ONE, OTHER, 2, "")
    with pytest.raises(InputError, match="texts with it have fewer than 8 tokens"):
        make_steering(model, ["abc"], OTHER, 0, "")
    with pytest.raises(InputError, match="texts without it have fewer than 8 tokens"):
        make_steering(model, ONE, [], 0, "")
    with pytest.raises(InputError, match="the same to the model"):
        make_steering(model, ONE, ONE, 0, "")
