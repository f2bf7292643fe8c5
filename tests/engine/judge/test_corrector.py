"""The head computes its formula, and only a sound file made for these very weights is used."""

import json
import math

import pytest
import torch
from safetensors.torch import save_file

from remask.contract.errors import ModelError, StorageError
from remask.engine.judge.corrector import (
    FORMAT,
    Corrector,
    default_taps,
    load_corrector,
    part_shapes,
    save_corrector,
    signs_of,
)

LAYERS, WIDTH, INNER, TAPS = 6, 12, 5, (1, 3, 5)
BASE = "ab" * 32


def parts(seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = part_shapes(len(TAPS), WIDTH, INNER)
    return {n: torch.randn(s, generator=generator).half().float() for n, s in shapes.items()}


def head(**changes):
    values = {"parts": parts(), "taps": TAPS, "threshold": 0.4, "strict": 0.9, "base": BASE, "facts": {"x": 1}}
    return Corrector(**values | changes)


def load(path, **changes):
    return load_corrector(path, **{"base": BASE, "layers": LAYERS, "width": WIDTH} | changes)


def naive(p, states, signs):
    """The formula of one token in plain numbers."""
    normed = [[v / math.sqrt(sum(x * x for x in h) / len(h) + 1e-6) for v in h] for h in states.tolist()]
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    dot = lambda a, b: sum(x * y for x, y in zip(a, b, strict=True))  # noqa: E731
    p = {n: t.tolist() for n, t in p.items()}
    signs = signs.tolist()
    inner = []
    for m in range(INNER):
        total = dot(p["signs.weight"][m], signs) + p["signs.bias"][m]
        for k in range(len(TAPS)):
            gate = sigmoid(dot(p["gate.weight"][k], normed[-1]) + p["gate.bias"][k])
            total += gate * (dot(p["skip.weight"][k][m], normed[k]) + p["skip.bias"][k][m])
        inner.append(total * sigmoid(total))
    return sigmoid(dot(p["out.weight"], inner + signs) + p["out.bias"])


def test_the_head_equals_its_formula():
    states, signs = torch.randn(7, len(TAPS), WIDTH) * 30, torch.randn(7, 4)
    expected = [naive(parts(), s, g) for s, g in zip(states, signs, strict=True)]
    assert head().wrong(states, signs).tolist() == pytest.approx(expected, abs=1e-5)


def test_signs_are_what_they_say():
    scores = torch.tensor([[2.0, 1.0, 0.0, -1.0], [0.0, 0.0, 0.0, 9.0], [0.0, 0.0, 0.0, 60.0]])
    found = signs_of(scores, torch.tensor([0, 3, 1])) * torch.tensor([10.0, 10.0, 10.0, 1.0])
    p = scores.softmax(-1)
    entropy = -(p * p.clamp_min(1e-30).log()).sum(-1)
    assert torch.allclose(found[:, 0], torch.tensor([p[0, 0].log(), p[1, 3].log(), -20.0]), atol=1e-4)
    assert torch.allclose(found[:, 1], entropy, atol=1e-4)
    assert torch.allclose(found[:, 2], torch.tensor([1.0, 9.0, -20.0]), atol=1e-4)
    assert found[:, 3].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_states_of_any_float_are_taken(dtype):
    states, signs = torch.randn(5, len(TAPS), WIDTH), torch.randn(5, 4)
    assert torch.allclose(head().wrong(states.to(dtype), signs), head().wrong(states, signs), atol=0.05)


def test_a_head_survives_its_file(tmp_path):
    path = tmp_path / "corrector.safetensors"
    save_corrector(path, head())
    back = load(path)
    assert (back.taps, back.threshold, back.strict, back.base, back.facts) == (TAPS, 0.4, 0.9, BASE, {"x": 1})
    assert all(torch.equal(back.parts[n], t) for n, t in parts().items())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"base": "cd" * 32}, "made for other weights"),
        ({"width": WIDTH + 1}, "does not fit this model"),
        ({"layers": 5}, "does not fit this model"),
    ],
)
def test_a_head_for_another_model_is_refused(tmp_path, changes, says):
    save_corrector(tmp_path / "a.safetensors", head())
    with pytest.raises(ModelError, match=says):
        load(tmp_path / "a.safetensors", **changes)


def test_bytes_that_are_no_head_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    with pytest.raises(ModelError, match="cannot be read"):
        load(path)
    save_corrector(path, head())
    whole = path.read_bytes()
    for damaged in (b"", b"x" * 100, whole[:-3]):
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match="cannot be read"):
            load(path)
    save_file(parts(), path)
    with pytest.raises(ModelError, match="no corrector head"):
        load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("taps", "[]"),
        ("taps", "[3, 1]"),
        ("taps", '["a"]'),
        ("taps", "[1, true]"),
        ("taps", "{"),
        ("inner", "-1"),
        ("threshold", "0"),
        ("strict", "nan"),
        ("facts", "[]"),
        ("facts", "[" * 5000),
        ("base", None),
    ],
)
def test_what_a_file_says_of_itself_is_checked(tmp_path, name, value):
    metadata = {"format": FORMAT, "taps": json.dumps(TAPS), "inner": str(INNER), "width": str(WIDTH), "facts": "{}"}
    metadata |= {"threshold": "0.4", "strict": "0.9", "base": BASE}
    path = tmp_path / "a.safetensors"
    save_file(parts(), path, metadata)
    assert load(path).threshold == 0.4
    metadata[name] = value
    save_file(parts(), path, {n: v for n, v in metadata.items() if v is not None})
    with pytest.raises(ModelError, match="not sound"):
        load(path)


def test_numbers_that_are_none_are_refused(tmp_path):
    broken = parts()
    broken["out.weight"][0] = torch.nan
    save_corrector(tmp_path / "a.safetensors", head(parts=broken))
    with pytest.raises(ModelError, match="numbers that are none"):
        load(tmp_path / "a.safetensors")


def test_parts_that_are_missing_or_too_many_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    for changed in ({n: t for n, t in parts().items() if n != "gate.bias"}, parts() | {"more": torch.zeros(1)}):
        save_corrector(path, head(parts=changed))
        with pytest.raises(ModelError, match="does not fit"):
            load(path)


def test_taps_are_spread_over_the_depth():
    assert default_taps(30) == (9, 19, 29)
    assert default_taps(2) == (0, 1)
    assert default_taps(1) == (0,)


def test_the_default_head_is_small():
    numbers = sum(math.prod(s) for s in part_shapes(3, 576, 128).values())
    assert 2 * numbers < 1_000_000


def test_a_full_disk_leaves_the_old_head(tmp_path, monkeypatch):
    from remask.engine.judge import corrector

    path = tmp_path / "a.safetensors"
    save_corrector(path, head())

    def full(tensors, name, metadata):
        name.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(corrector, "save_file", full)
    with pytest.raises(StorageError, match="No space left"):
        save_corrector(path, head(threshold=0.6))
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert load(path).threshold == 0.4
