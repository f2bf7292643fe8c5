"""Loading: what is right comes in exact, what is wrong is one sentence and nothing is kept."""

import hashlib
import json
import re

import pytest
import torch
from safetensors.torch import save_file
from tiny import SHAPE, random_weights

from remask.contract.errors import ModelError
from remask.engine.models.checkpoint import expected_tensors, read_tokenizer, read_weights
from remask.engine.models.shards import fingerprint, holds_int8

CPU = torch.device("cpu")


def load(folder, dtype=torch.float32):
    return read_weights(folder, SHAPE, dtype=dtype, device=CPU)


def write(folder, weights, shards=1):
    folder.mkdir(exist_ok=True)
    if shards == 1:
        save_file(weights, folder / "model.safetensors")
        return
    placed = {}
    for number in range(shards):
        name = f"model-{number}.safetensors"
        part = {k: weights[k] for k in sorted(weights)[number::shards]}
        save_file(part, folder / name)
        placed |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))


@pytest.fixture
def weights():
    return random_weights()


@pytest.mark.parametrize("shards", [1, 3])
def test_round_trip(tmp_path, weights, shards):
    write(tmp_path, weights, shards)
    loaded = load(tmp_path)
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[n], weights[n]) for n in weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_int8_rows_are_scaled(tmp_path, weights, dtype):
    name = "model.layers.0.mlp.up_proj.weight"
    rows = torch.randint(-127, 128, weights[name].shape, dtype=torch.int8)
    scale = torch.rand(rows.shape[0]) + 0.01
    write(tmp_path, weights | {name: rows, f"{name}_scale": scale})
    assert torch.equal(load(tmp_path, dtype)[name], (rows.float() * scale[:, None]).to(dtype))


def test_more_rows_than_a_chunk(monkeypatch, tmp_path, weights):
    monkeypatch.setattr("remask.engine.models.checkpoint.CHUNK_ROWS", 7)
    test_int8_rows_are_scaled(tmp_path, weights, torch.float32)


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda w: w.pop(NORM), "lacks 'model.norm.weight'"),
        (lambda w: w.update(extra=torch.ones(1)), "'extra', which the model does not have"),
        (lambda w: w.update({NORM: torch.ones(3)}), r"model.norm.weight has the shape \(3,\)"),
        (lambda w: w.update({NORM: torch.ones(32, dtype=torch.int8)}), "does not hold 'model.norm.weight'"),
    ],
)
def test_wrong_tensors(tmp_path, weights, spoil, sentence):
    spoil(weights)
    write(tmp_path, weights)
    with pytest.raises(ModelError, match=sentence):
        load(tmp_path)


@pytest.mark.parametrize("keep", [0, 5, 100, -40])
def test_cut_shard(tmp_path, weights, keep):
    write(tmp_path, weights)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match="damaged"):
        load(tmp_path)


def test_changed_byte_is_found_by_the_checksum(tmp_path, weights):
    write(tmp_path, weights)
    path = tmp_path / "model.safetensors"
    data = bytearray(path.read_bytes())
    (tmp_path / "SHA256SUMS").write_text(f"{hashlib.sha256(data).hexdigest()}  {path.name}\n")
    load(tmp_path)
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match="checksum"):
        load(tmp_path)


def test_sums_that_are_not_text(tmp_path, weights):
    write(tmp_path, weights)
    (tmp_path / "SHA256SUMS").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match="SHA256SUMS cannot be read"):
        load(tmp_path)


def test_missing_shard(tmp_path, weights):
    write(tmp_path, weights, shards=2)
    (tmp_path / "model-1.safetensors").unlink()
    with pytest.raises(ModelError, match=re.escape("model-1.safetensors is missing")):
        load(tmp_path)


def test_index_cannot_point_outside_the_folder(tmp_path, weights):
    write(tmp_path / "inside", weights)
    placed = dict.fromkeys(expected_tensors(SHAPE), "../model.safetensors")
    write(tmp_path, weights)
    (tmp_path / "inside" / "model.safetensors").unlink()
    (tmp_path / "inside" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    with pytest.raises(ModelError, match="missing"):
        load(tmp_path / "inside")


@pytest.mark.parametrize("index", ["{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": 1}}'])
def test_damaged_index(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelError, match="index"):
        load(tmp_path)


def test_pickles_are_refused(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="pickle"):
        load(tmp_path)


def test_empty_folder(tmp_path):
    with pytest.raises(ModelError, match="no weights"):
        load(tmp_path)


@pytest.mark.parametrize("content", [None, "", "{}", "not json"])
def test_bad_tokenizer(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match="tokenizer"):
        read_tokenizer(tmp_path)


def test_fingerprint_changes_with_the_files(tmp_path, weights):
    write(tmp_path, weights)
    before = fingerprint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert fingerprint(tmp_path) != before


def test_int8_rows_stay_and_other_matrices_are_rounded_to_them(tmp_path, weights):
    name, other = "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.gate_proj.weight"
    rows = torch.randint(-127, 128, weights[name].shape, dtype=torch.int8)
    scale = torch.rand(rows.shape[0]) + 0.01
    write(tmp_path, weights | {name: rows, f"{name}_scale": scale})
    loaded = load(tmp_path, torch.int8)
    assert torch.equal(loaded[name], rows)
    assert torch.equal(loaded[f"{name}_scale"], scale)
    back = loaded[other] * loaded[f"{other}_scale"][:, None]
    assert (back - weights[other]).abs().max() <= loaded[f"{other}_scale"].max() / 2 * 1.001
    assert loaded["model.norm.weight"].dtype == torch.float32
    assert holds_int8(tmp_path)


def test_a_checkpoint_of_floats_holds_no_int8(tmp_path, weights):
    write(tmp_path, weights, shards=3)
    assert not holds_int8(tmp_path)
