"""Preparing a plain checkpoint: the same weights, marks from its tokenizer, and a sentence where that cannot be."""

import json
import os

import pytest
import torch
from checkpoints import SPECIAL, VOCAB, random_tensors, write_checkpoint
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from remask.contract.errors import InputError, ModelError, RemaskError, StorageError
from remask.engine.models.model import Model
from remask.engine.models.spec import Layout, Regime
from remask.engine.training import prepare as module
from remask.engine.training.prepare import Marks, prepare

ARCHITECTURES = {"LlamaForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3"}
CODER = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_pad|>")
SMOL = ("<|endoftext|>", "<|im_start|>", "<repo_name>", "<file_sep>", "<gh_stars>", "<issue_start>")
RESERVED = ("<|end_of_text|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|reserved_special_token_0|>")


def plain(folder, special=CODER, architecture="LlamaForCausalLM", **changes):
    """An autoregressive checkpoint with these special tokens behind its 256 bytes."""
    write_checkpoint(folder, "remask", architectures=[architecture], model_type=ARCHITECTURES[architecture], **changes)
    config = json.loads((folder / "config.json").read_text())
    del config["remask"]
    config |= {"eos_token_id": 256, "_name_or_path": "/home/somebody/model"}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(random_tensors(config), folder / "model.safetensors")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def left(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_plain_shape_becomes_trainable(tmp_path, architecture):
    source = plain(tmp_path / "plain", architecture=architecture)
    with pytest.raises(ModelError, match="autoregressive"):
        Model.load(source)
    spec = prepare(source, tmp_path / "out")
    model = Model.load(tmp_path / "out", dtype="float32")
    assert model.spec == spec
    assert (spec.name, spec.regime, spec.layout) == ("plain", Regime.CAUSAL, Layout.SUFFIX_PREFIX)
    assert (spec.block_size, spec.shift, spec.verifies, spec.end_ids) == (8, 1, True, (256,))
    assert [spec.prefix_id, spec.suffix_id, spec.mask_id] == [259, 260, 261]
    assert "/home" not in (tmp_path / "out" / "config.json").read_text()


def test_weights_are_the_same_file(tmp_path):
    source = plain(tmp_path / "plain")
    prepare(source, tmp_path / "out")
    assert os.path.samefile(source / "model.safetensors", tmp_path / "out" / "model.safetensors")


def test_weights_are_copied_where_links_are_not_possible(tmp_path, monkeypatch):
    def no_link(*_):
        raise OSError(18, "Invalid cross-device link")

    source = plain(tmp_path / "plain")
    monkeypatch.setattr(module.os, "link", no_link)
    prepare(source, tmp_path / "out")
    copied = load_file(tmp_path / "out" / "model.safetensors")
    assert all(torch.equal(copied[n], t) for n, t in load_file(source / "model.safetensors").items())


@pytest.mark.parametrize(
    ("special", "marks", "chosen"),
    [
        (CODER, Marks(), ("<|fim_pad|>", "<|fim_prefix|>", "<|fim_suffix|>")),
        (RESERVED, Marks(), ("<|reserved_special_token_0|>", "<|fim_prefix|>", "<|fim_suffix|>")),
        (SPECIAL, Marks(), ("<|mask|>", "<|prefix|>", "<|suffix|>")),
        (SMOL, Marks(mask="<gh_stars>", prefix="<repo_name>", suffix="<file_sep>"), None),
        (CODER, Marks(mask="<|new|>"), ("<|new|>", "<|fim_prefix|>", "<|fim_suffix|>")),
    ],
)
def test_marks_are_found_named_or_new(tmp_path, special, marks, chosen):
    spec = prepare(plain(tmp_path / "plain", special), tmp_path / "out", marks=marks, name="mine")
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    ids = tuple(tokenizer.token_to_id(t) for t in (chosen or (marks.mask, marks.prefix, marks.suffix)))
    assert (spec.mask_id, spec.prefix_id, spec.suffix_id) == ids
    assert spec.name == "mine"
    assert tokenizer.encode("a<|new|>b").ids[1:-1] == (
        [262] if marks.mask == "<|new|>" else tokenizer.encode("<|new|>").ids
    )
    Model.load(tmp_path / "out")


@pytest.mark.parametrize(
    ("special", "marks", "sentence"),
    [
        (SMOL, Marks(), "name --mask-token and --prefix-token and --suffix-token.*<repo_name>, <file_sep>, <gh_stars>"),
        (SMOL, Marks(prefix="<file_sep>"), "name --mask-token and --suffix-token.*<repo_name>, <gh_stars>"),
        (SMOL, Marks(mask="<a>", prefix="<a>", suffix="<b>"), "three different tokens"),
        (SPECIAL[:1], Marks(), "no special token without a common use. 63 new ones would fit"),
    ],
)
def test_marks_that_are_not_there(tmp_path, special, marks, sentence):
    with pytest.raises(InputError, match=sentence):
        prepare(plain(tmp_path / "plain", special), tmp_path / "out", marks=marks)
    assert left(tmp_path) == ["plain"]


def test_new_marks_need_room_in_the_embedding(tmp_path):
    special = (*SMOL, *(f"<{i}>" for i in range(VOCAB - 256 - len(SMOL))))
    source = plain(tmp_path / "plain", special)
    with pytest.raises(InputError, match=r"no token '<\|mask\|>', and the embedding no row.*Name one of <repo_name>"):
        prepare(source, tmp_path / "out", marks=Marks(mask="<|mask|>", prefix="<1>", suffix="<2>"))
    assert (
        prepare(source, tmp_path / "out", marks=Marks(mask="<3>", prefix="<1>", suffix="<2>")).mask_id
        == 256 + len(SMOL) + 3
    )


def test_a_prepared_one_is_refused_politely(tmp_path):
    prepare(plain(tmp_path / "plain"), tmp_path / "out")
    with pytest.raises(InputError, match=r"is prepared already\. Train it as it is"):
        prepare(tmp_path / "out", tmp_path / "again")


@pytest.mark.parametrize("family", ["sdar", "wedlm", "dream", "open-dcoder", "tiny-a2d"])
def test_one_that_denoises_already_is_refused(tmp_path, family):
    with pytest.raises(InputError, match="denoises already"):
        prepare(write_checkpoint(tmp_path / "plain", family), tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "cannot train the architecture MambaForCausalLM"),
        ({"architectures": None}, "cannot train the architecture none"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rotary positions of the kind 'yarn'"),
        ({"hidden_size": None}, "wrong value"),
        ({"num_hidden_layers": 3}, "lacks 'model.layers.2"),
        ({"num_hidden_layers": 1}, "holds 'model.layers.1"),
    ],
)
def test_checkpoints_of_another_shape(tmp_path, changes, sentence):
    source = plain(tmp_path / "plain")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(RemaskError, match=sentence):
        prepare(source, tmp_path / "out")
    assert left(tmp_path) == ["plain"]


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_missing_files(tmp_path, name):
    source = plain(tmp_path / "plain")
    (source / name).unlink()
    with pytest.raises(ModelError):
        prepare(source, tmp_path / "out")
    assert left(tmp_path) == ["plain"]


def test_a_shard_that_the_index_names_is_missing(tmp_path):
    source = plain(tmp_path / "plain", shards=2)
    names = list(random_tensors(json.loads((source / "config.json").read_text())))
    (source / "model.safetensors").unlink()
    (source / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": dict.fromkeys(names, "x.safetensors")})
    )
    with pytest.raises(ModelError, match=r"x\.safetensors is missing"):
        prepare(source, tmp_path / "out")
    assert left(tmp_path) == ["plain"]


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    source = plain(tmp_path / "plain")
    monkeypatch.setattr(module.shutil, "copyfile", full)
    with pytest.raises(StorageError, match="No space left"):
        prepare(source, tmp_path / "out")
    assert left(tmp_path) == ["plain"]


def test_a_filled_folder_is_refused(tmp_path):
    source = plain(tmp_path / "plain")
    with pytest.raises(InputError, match="something in"):
        prepare(source, source)
