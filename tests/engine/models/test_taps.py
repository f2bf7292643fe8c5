"""What passes keep of their way and add on it: against stacks of fewer layers, in torch and in C."""

from dataclasses import replace

import pytest
import torch
from tiny import SHAPE, random_weights

from remask.engine.models.checkpoint import quantise
from remask.engine.models.native import NativeTransformer, native_library
from remask.engine.models.passes import Pass, Taps
from remask.engine.models.transformer import Transformer

CPU = torch.device("cpu")
DEEP = replace(SHAPE, layers=4)
TOKENS = [(7 * i + 3) % 256 for i in range(9)]

compiled = pytest.mark.skipif(native_library() is None, reason="no C compiler, or no integer dot products")


def pair():
    """The C pass and the torch one in float32, of the same weights."""
    narrow, wide = {}, {}
    for name, w in random_weights(SHAPE).items():
        narrow[name] = wide[name] = w
        if w.ndim == 2:
            narrow[name], narrow[f"{name}_scale"] = rows, scale = quantise(w)
            wide[name] = rows * scale[:, None]
    return NativeTransformer(SHAPE, narrow), Transformer(SHAPE, wide)


def close(got, want):
    """Keys and values of the C pass are bfloat16: 8 bits."""
    assert (got - want).norm() < 0.01 * want.norm()


def states(transformer, taps=None):
    return transformer.forward(Pass.causal(TOKENS, 0, CPU), transformer.new_cache(), taps)


def behind(weights, layers):
    """The states behind the first `layers` layers: a shallower model's result."""
    return states(Transformer(replace(DEEP, layers=layers), weights))


def from_layer(weights, first, x):
    """What the layers from `first` on make of states: a model whose embeddings they are."""
    rest = {"model.embed_tokens.weight": x.clone(), "model.norm.weight": weights["model.norm.weight"]}
    for name, tensor in weights.items():
        if name.startswith("model.layers."):
            number = int(name.split(".")[2]) - first
            rest[".".join(["model.layers", str(number), *name.split(".")[3:]])] = tensor
    shape = replace(DEEP, layers=DEEP.layers - first, vocab=len(x))
    transformer = Transformer(shape, rest)
    return transformer.forward(Pass.causal(list(range(len(x))), 0, CPU), transformer.new_cache())


def test_taps_are_the_states_of_shallower_models():
    weights = random_weights(DEEP)
    taps = Taps((0, 2, 3))
    whole = states(Transformer(DEEP, weights), taps)
    for layer, state in zip(taps.layers, taps.states, strict=True):
        torch.testing.assert_close(state, behind(weights, layer + 1))
    torch.testing.assert_close(taps.stacked()[:, -1], whole)
    torch.testing.assert_close(whole, states(Transformer(DEEP, weights)))


@pytest.mark.parametrize("layer", [0, 2, 3])
def test_a_vector_is_added_behind_its_layer(layer):
    weights, vector = random_weights(DEEP), torch.linspace(-1, 1, SHAPE.width)
    transformer = Transformer(DEEP, weights)
    transformer.steer({layer: vector})
    taps = Taps((layer,))
    found = states(transformer, taps)
    pushed = behind(weights, layer + 1) + vector
    torch.testing.assert_close(taps.states[0], pushed)
    expected = pushed if layer == 3 else from_layer(weights, layer + 1, pushed)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    transformer.steer({})
    torch.testing.assert_close(states(transformer), states(Transformer(DEEP, weights)))


@compiled
@pytest.mark.parametrize("vectors", [{}, {0: 1.0}, {1: -2.0}, {0: 0.5, 1: 3.0}])
def test_the_c_pass_taps_and_steers_as_the_plain_one(vectors):
    native, plain = pair()
    for transformer in (native, plain):
        transformer.steer({layer: s * torch.linspace(-1, 1, SHAPE.width) for layer, s in vectors.items()})
    ours, theirs = Taps((0, 1)), Taps((0, 1))
    close(states(native, ours), states(plain, theirs))
    close(ours.stacked(), theirs.stacked())
    assert torch.equal(ours.states[1], states(native))


@compiled
def test_steering_moves_what_the_c_pass_says_and_can_be_taken_off():
    native, _ = pair()
    before = states(native)
    native.steer({1: torch.ones(SHAPE.width)})
    torch.testing.assert_close(states(native), before + 1.0)
    native.steer({})
    assert torch.equal(states(native), before)
