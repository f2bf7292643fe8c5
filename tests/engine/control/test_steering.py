"""Steering vectors: their files, what they do to a model, and that the plain model's cache is not theirs."""

import json

import pytest
import torch
from checkpoints import write_checkpoint
from safetensors.torch import save_file

from remask.contract.errors import InputError, ModelError, StorageError
from remask.contract.messages import CompletionRequest
from remask.engine.api import Engine, EngineOptions
from remask.engine.control.steering import FORMAT, Steer, Steering, digest, load_steering, save_steering
from remask.engine.models.adapter import digest_of

WIDTH, LAYERS, BASE = 32, 2, "ab" * 32


@pytest.fixture
def folder(tmp_path):
    return write_checkpoint(tmp_path / "base", "remask")


def write(path, vector=None, layer=1, base=BASE):
    save_steering(path, Steering(vector=torch.ones(WIDTH) if vector is None else vector, layer=layer, base=base))
    return path


@pytest.mark.parametrize(
    ("text", "path", "strength"),
    [
        ("a.safetensors", "a.safetensors", 1.0),
        ("a.safetensors:2.5", "a.safetensors", 2.5),
        ("a:-1", "a", -1.0),
        ("C:\\models\\a.safetensors", "C:\\models\\a.safetensors", 1.0),
        ("3", "3", 1.0),
        ("a:", "a:", 1.0),
    ],
)
def test_a_file_may_have_a_strength(text, path, strength):
    found = Steer.parse(text)
    assert (str(found.path), found.strength) == (path, strength)
    assert Steer.parse(str(found)) == found


@pytest.mark.parametrize("strength", ["1e9", "-101", "nan", "inf"])
def test_a_strength_has_bounds(strength):
    with pytest.raises(InputError, match="strength is -100 to 100"):
        Steer.parse(f"a.safetensors:{strength}")


def load(path, **changes):
    return load_steering(path, **{"base": BASE, "layers": LAYERS, "width": WIDTH} | changes)


def test_a_vector_survives_its_file(tmp_path):
    vector = torch.linspace(-1, 1, WIDTH)
    path = tmp_path / "new" / "a.safetensors"
    save_steering(path, Steering(vector=vector, layer=1, base=BASE, facts={"size": 0.1}))
    back = load(path)
    assert torch.equal(back.vector, vector)
    assert (back.layer, back.base, back.facts) == (1, BASE, {"size": 0.1})
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"base": "cd" * 32}, "made for other weights"),
        ({"width": WIDTH + 1}, "does not fit this model"),
        ({"layers": 1}, "does not fit this model"),
    ],
)
def test_a_vector_of_another_model_is_refused(tmp_path, changes, says):
    with pytest.raises(ModelError, match=says):
        load(write(tmp_path / "a.safetensors"), **changes)


def test_bytes_that_are_no_vector_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    with pytest.raises(ModelError, match="cannot be read"):
        load(path)
    path.write_bytes(b"no vector")
    with pytest.raises(ModelError, match="cannot be read"):
        load(path)
    save_file({"vector": torch.ones(WIDTH)}, path)
    with pytest.raises(ModelError, match="no steering vector"):
        load(path)
    with pytest.raises(ModelError, match="numbers that are none"):
        load(write(path, torch.full((WIDTH,), torch.nan)))


@pytest.mark.parametrize(
    ("name", "value"), [("layer", "-1"), ("layer", "true"), ("width", "x"), ("facts", "[]"), ("base", None)]
)
def test_what_a_file_says_of_itself_is_checked(tmp_path, name, value):
    metadata = {"format": FORMAT, "layer": "1", "width": str(WIDTH), "base": BASE, "facts": "{}", name: value}
    save_file(
        {"vector": torch.ones(WIDTH)}, tmp_path / "a.safetensors", {k: v for k, v in metadata.items() if v is not None}
    )
    with pytest.raises(ModelError, match="not sound"):
        load(tmp_path / "a.safetensors")


def test_a_folder_that_refuses_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        write(tmp_path / "file" / "a.safetensors")


def engine(folder, *steers, cache=False):
    return Engine.load(EngineOptions(model=folder, device="cpu", dtype="float32", steer=steers, cache=cache))


def states(one):
    from remask.engine.models.passes import Pass

    transformer = one.model.transformer
    return transformer.forward(Pass.causal([3, 4, 5], 0, transformer.device), transformer.new_cache())


def test_vectors_are_added_with_their_strength(folder, tmp_path):
    base = digest_of(folder)
    last = write(tmp_path / "last.safetensors", layer=1, base=base)
    other = write(tmp_path / "other.safetensors", torch.linspace(0, 1, WIDTH), layer=1, base=base)
    plain = states(engine(folder))
    torch.testing.assert_close(states(engine(folder, Steer(last, 2.0))), plain + 2.0)
    both = states(engine(folder, Steer(last, -1.0), Steer(other, 0.5)))
    torch.testing.assert_close(both, plain - 1.0 + 0.5 * torch.linspace(0, 1, WIDTH))
    first = write(tmp_path / "first.safetensors", layer=0, base=base)
    assert engine(folder, Steer(first), Steer(last)).model.transformer.steering.keys() == {0, 1}


def test_every_way_of_steering_has_a_fingerprint_of_its_own(folder, tmp_path):
    path = write(tmp_path / "a.safetensors", base=digest_of(folder))
    ways = [(), (Steer(path),), (Steer(path, 2.0),), (Steer(path), Steer(path, 2.0))]
    found = [engine(folder, *way).model.fingerprint for way in ways]
    assert len(set(found)) == len(ways)
    assert found[3] == engine(folder, Steer(path, 3.0)).model.fingerprint  # the same sum
    assert digest({0: torch.ones(3)}) != digest({1: torch.ones(3)})


def test_what_the_plain_model_has_read_is_not_taken_for_the_steered_ones(folder, tmp_path):
    ask = CompletionRequest(document="a", language="python", prefix="value = other + ", max_tokens=4)
    path = write(tmp_path / "a.safetensors", 5 * torch.randn(WIDTH), layer=0, base=digest_of(folder))
    for steers in ((), (Steer(path),), (Steer(path, -1.0),)):
        cold = engine(folder, *steers, cache=True)
        first = cold.complete(ask)
        assert first.prompt.cached == 0
        cold.close()
        warm = engine(folder, *steers, cache=True).complete(ask)
        assert warm.prompt.cached > 0
        assert (warm.text, warm.score) == (first.text, pytest.approx(first.score, abs=1e-3))


def test_a_vector_for_other_weights_is_refused_by_name(folder, tmp_path):
    path = write(tmp_path / "a.safetensors")
    with pytest.raises(ModelError, match=f"{path} was made for other weights"):
        engine(folder, Steer(path))
    assert json.loads(json.dumps(str(Steer(path)))) == f"{path}:1"
