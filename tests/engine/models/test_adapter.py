"""Adapters: merged exactly, over their own base only, and refused in a sentence where they would be read wrong."""

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from adapters import RANK, random_pairs, write_adapter
from checkpoints import write_checkpoint
from safetensors.torch import load_file, save_file

from remask.contract.errors import InputError, ModelError
from remask.engine.models.adapter import adapters_over, digest_of, read_adapter, read_merged
from remask.engine.models.checkpoint import quantise, read_tokenizer
from remask.engine.models.model import Model
from remask.engine.models.read_spec import read_spec

CPU = torch.device("cpu")
Q, DOWN, UNTOUCHED = (f"model.layers.1.{m}.weight" for m in ("self_attn.q_proj", "mlp.down_proj", "self_attn.v_proj"))


@pytest.fixture
def base(tmp_path):
    return write_checkpoint(tmp_path / "base", "remask")


@pytest.fixture
def adapter(tmp_path):
    return write_adapter(tmp_path / "adapter")


def weights(folder, *adapters, dtype=torch.float32):
    spec = read_spec(folder, read_tokenizer(folder))
    found = [read_adapter(a) for a in adapters]
    return read_merged(folder, spec.shape, found, dtype=dtype, device=CPU)


def expected(name, factor, seed=0):
    a, b = random_pairs(seed)[name.removesuffix(".weight")]
    return factor * b @ a


def sealed(adapter: Path, base: Path, *carried, name="mine"):
    """The adapter with a section of Remask's own that names its base."""
    config = json.loads((adapter / "adapter_config.json").read_text())
    digest = digest_of(base, [read_adapter(c) for c in carried])
    config["remask"] = {"name": name, "base": {"name": "some base", "sha256": digest}}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    return adapter


@pytest.mark.parametrize(
    ("changes", "factor"),
    [({}, 2.0), ({"lora_alpha": RANK}, 1.0), ({"use_rslora": True}, 6 / math.sqrt(RANK))],
)
def test_the_product_is_added_with_its_factor(base, tmp_path, changes, factor):
    plain, merged = weights(base), weights(base, write_adapter(tmp_path / "a", **changes))
    for name in (Q, DOWN):
        torch.testing.assert_close(merged[name], plain[name] + expected(name, factor), atol=1e-5, rtol=1e-5)
    assert torch.equal(merged[UNTOUCHED], plain[UNTOUCHED])


@pytest.mark.parametrize("lead", ["base_model.model.", ""])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_ways_of_naming_and_storing(base, tmp_path, lead, dtype):
    pairs = {name: (a.to(dtype), b.to(dtype)) for name, (a, b) in random_pairs().items()}
    change = weights(base, write_adapter(tmp_path / "a", pairs, lead=lead))[Q] - weights(base)[Q]
    torch.testing.assert_close(change, expected(Q, 2.0), atol=0.2 if dtype == torch.bfloat16 else 1e-5, rtol=1e-5)


def test_int8_rows_of_an_adapter(base, tmp_path, adapter):
    stored = {}
    for name, tensor in load_file(adapter / "adapter_model.safetensors").items():
        stored[name], stored[f"{name}_scale"] = quantise(tensor)
    save_file(stored, adapter / "adapter_model.safetensors")
    rows = {n: stored[n].float() * stored[f"{n}_scale"][:, None] for n in stored if not n.endswith("_scale")}
    stem = "base_model.model." + Q.removesuffix(".weight")
    product = 2.0 * rows[f"{stem}.lora_B.weight"] @ rows[f"{stem}.lora_A.weight"]
    torch.testing.assert_close(weights(base, adapter)[Q], weights(base)[Q] + product, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chunk", [7, 512])
def test_int8_rows_of_a_base_are_rounded_again(monkeypatch, base, adapter, chunk):
    monkeypatch.setattr("remask.engine.models.lowrank.CHUNK_ROWS", chunk)
    whole = weights(base)[Q] + expected(Q, 2.0)
    merged = weights(base, adapter, dtype=torch.int8)
    rows, scale = merged[Q], merged[f"{Q}_scale"]
    assert rows.dtype == torch.int8
    assert (rows.float() * scale[:, None] - whole).abs().max() <= scale.max() / 2 + 1e-5


def test_a_stored_int8_base_is_dequantised_before(base, adapter):
    tensors = load_file(base / "model.safetensors")
    tensors[Q], tensors[f"{Q}_scale"] = quantise(tensors[Q])
    save_file(tensors, base / "model.safetensors")
    exact = tensors[Q].float() * tensors[f"{Q}_scale"][:, None] + expected(Q, 2.0)
    torch.testing.assert_close(weights(base, adapter)[Q], exact, atol=1e-5, rtol=1e-5)


def test_a_change_below_a_step_survives_rounding(tmp_path):
    """What is added to rows that lie on their steps must not be rounded away, as after a short training."""
    base = write_checkpoint(tmp_path / "wide", "remask", hidden_size=256, intermediate_size=512)
    tensors = load_file(base / "model.safetensors")
    tensors[DOWN], tensors[f"{DOWN}_scale"] = quantise(tensors[DOWN])
    save_file(tensors, base / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(RANK, 512, generator=generator), torch.randn(256, RANK, generator=generator)
    b *= 0.1 * tensors[f"{DOWN}_scale"].mean() / RANK**0.5
    change = b @ a
    adapter = write_adapter(tmp_path / "a", {DOWN.removesuffix(".weight"): (a, b)}, lora_alpha=RANK)
    merged = weights(base, adapter, dtype=torch.int8)
    found = merged[DOWN].float() * merged[f"{DOWN}_scale"][:, None] - weights(base)[DOWN]
    assert 0.8 < (found * change).sum() / (change * change).sum() < 1.2


def test_two_adapters_are_added_up(base, tmp_path, adapter):
    second = write_adapter(tmp_path / "second", random_pairs(1))
    both = weights(base, adapter, second)[Q]
    torch.testing.assert_close(both, weights(base)[Q] + expected(Q, 2.0) + expected(Q, 2.0, 1), atol=1e-4, rtol=1e-4)


def test_an_adapted_model_writes_other_tokens_and_has_another_fingerprint(base, adapter):
    plain, adapted = Model.load(base, dtype="float32"), Model.load(base, adapter=adapter, dtype="float32")
    again = Model.load(base, adapter=adapter, dtype="float32")
    assert adapted.spec.name == "base+adapter"
    assert adapted.fingerprint == again.fingerprint != plain.fingerprint
    write_adapter(adapter, random_pairs(1))
    assert Model.load(base, adapter=adapter, dtype="float32").fingerprint != adapted.fingerprint


def test_a_carried_adapter_is_merged_and_names_the_model(base, adapter):
    plain = Model.load(base, dtype="float32").fingerprint
    sealed(adapter, base, name="shipped")
    for path in adapter.iterdir():
        shutil.copy(path, base)
    carrying = Model.load(base, dtype="float32")
    assert carrying.spec.name == "shipped"
    assert carrying.fingerprint != plain
    assert [a.folder for a in adapters_over(base)] == [base]
    assert [a.folder for a in adapters_over(base, base)] == [base]


def test_a_named_adapter_lies_over_the_carried_one_or_takes_its_place(base, tmp_path, adapter):
    over_shards = sealed(write_adapter(tmp_path / "other", random_pairs(2)), base)
    for path in adapter.iterdir():
        shutil.copy(path, base)
    over_both = sealed(write_adapter(tmp_path / "top", random_pairs(1)), base, base)
    foreign = write_adapter(tmp_path / "foreign", random_pairs(3))
    assert [a.folder for a in adapters_over(base, over_both)] == [base, over_both]
    assert [a.folder for a in adapters_over(base, foreign)] == [base, foreign]
    assert [a.folder for a in adapters_over(base, over_shards)] == [over_shards]


def test_the_digest_does_not_depend_on_shards_or_sums(base, tmp_path):
    import hashlib

    known = digest_of(base)
    path = base / "model.safetensors"
    (base / "SHA256SUMS").write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    assert digest_of(base) == known
    assert digest_of(write_checkpoint(tmp_path / "another", "remask", seed=1)) != known


def test_another_base_is_refused(base, tmp_path, adapter):
    other = write_checkpoint(tmp_path / "other", "remask", seed=1)
    sealed(adapter, other)
    with pytest.raises(ModelError, match=r"mine was made for other weights \(some base\)"):
        adapters_over(base, adapter)
    for path in adapter.iterdir():
        shutil.copy(path, base)
    with pytest.raises(ModelError, match="mine was made for other weights"):
        Model.load(base)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"peft_type": "IA3"}, "of the kind 'IA3'"),
        ({"peft_type": None}, "of the kind None"),
        ({"use_dora": True}, "DoRA"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out"),
        ({"bias": "lora_only"}, "changes biases"),
        ({"lora_bias": True}, "lora_bias"),
        ({"rank_pattern": {"q_proj": 8}}, "rank_pattern"),
        ({"alpha_pattern": {"q_proj": 8}}, "alpha_pattern"),
        ({"layer_replication": [[0, 1]]}, "layer_replication"),
        ({"trainable_token_indices": [1]}, "trainable_token_indices"),
        ({"init_lora_weights": "pissa"}, "changed base weights"),
        ({"use_newest_kind": True}, "use_newest_kind"),
        ({"r": 0}, "no possible rank"),
        ({"r": "3"}, "no possible rank"),
        ({"lora_alpha": "x"}, "no possible factor"),
        ({"lora_alpha": math.inf}, "no possible factor"),
        ({"remask": 3}, "not an object"),
        ({"remask": {"base": 3}}, "not an object"),
        ({"r": 5}, "has the ranks 3 and 3"),
    ],
)
def test_what_would_be_read_wrong_is_refused_by_name(base, tmp_path, changes, sentence):
    with pytest.raises(ModelError, match=re.escape(sentence)):
        weights(base, write_adapter(tmp_path / "a", **changes))


def spoiled(adapter, spoil):
    tensors = load_file(adapter / "adapter_model.safetensors")
    spoil(tensors, "base_model.model." + Q.removesuffix(".weight"))
    save_file(tensors, adapter / "adapter_model.safetensors")
    return adapter


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda t, q: t.pop(f"{q}.lora_A.weight"), "only one of the two matrices"),
        (lambda t, q: t.update({f"{q}.lora_A.weight": torch.ones(RANK, 33)}), "of the shape (32, 33)"),
        (lambda t, q: t.update({f"{q}.lora_A.weight": torch.ones(4, 32)}), "has the ranks 4 and 3"),
        (lambda t, q: t.update({f"{q}.lora_A.weight": torch.ones(32)}), "in a way that Remask does not read"),
        (lambda t, q: t.update({f"{q}.lora_A.weight": torch.ones(3, 32).int()}), "in a way that Remask does not read"),
        (lambda t, q: t.update({f"{q}.lora_A.weight": torch.ones(3, 32).to(torch.int8)}), "in a way that"),
        (lambda t, q: t.update({f"{q}.lora_A.weight_scale": torch.ones(3)}), "in a way that Remask does not read"),
        (lambda t, q: t.update({f"{q}.lora_magnitude_vector": torch.ones(32)}), "lora_magnitude_vector"),
        (lambda t, q: t.update({"base_model.model.lm_head.weight": torch.ones(2, 2)}), "lm_head.weight"),
        (
            lambda t, q: t.update({f"x.lora_{p}.weight": torch.ones(RANK, RANK) for p in "AB"}),
            "'x.weight', which is no matrix of this model",
        ),
        (
            lambda t, q: t.update(
                {f"model.embed_tokens.lora_{p}.weight": torch.ones(s) for p, s in (("A", (3, 32)), ("B", (320, 3)))}
            ),
            "embed_tokens",
        ),
        (lambda t, q: t.clear(), "holds no matrices"),
    ],
)  # fmt: skip
def test_tensors_that_do_not_fit(base, adapter, spoil, sentence):
    with pytest.raises(ModelError, match=re.escape(sentence)):
        weights(base, spoiled(adapter, spoil))


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_half_an_adapter_is_never_loaded(base, adapter, name):
    (adapter / name).unlink()
    with pytest.raises(ModelError, match=f"{re.escape(name)} is missing"):
        read_adapter(adapter)
    for path in adapter.iterdir():
        shutil.copy(path, base)
    with pytest.raises(ModelError, match=f"{re.escape(name)} is missing"):
        Model.load(base)


def test_a_pickled_adapter_is_refused(adapter):
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(ModelError, match="pickled"):
        read_adapter(adapter)


@pytest.mark.parametrize("keep", [0, 5, 100, -40])
def test_a_cut_file(base, adapter, keep):
    path = adapter / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match="damaged"):
        weights(base, adapter)


def test_a_changed_byte_is_found_by_the_checksum(base, adapter):
    import hashlib

    path = adapter / "adapter_model.safetensors"
    data = bytearray(path.read_bytes())
    (adapter / "SHA256SUMS").write_text(f"{hashlib.sha256(data).hexdigest()}  {path.name}\n")
    weights(base, adapter)
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match="checksum"):
        weights(base, adapter)


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_a_configuration_that_is_no_object(adapter, text):
    (adapter / "adapter_config.json").write_text(text)
    with pytest.raises(ModelError, match="adapter_config"):
        read_adapter(adapter)


def test_a_family_that_takes_no_adapters(tmp_path, adapter):
    pytest.importorskip("transformers", minversion="5.24")
    from gemma import write_gemma

    with pytest.raises(InputError, match="no adapters into checkpoints of this family"):
        Model.load(write_gemma(tmp_path / "gemma"), adapter=adapter)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak counter")
def test_merging_holds_little_more_than_the_weights(tmp_path):
    """Peak memory of loading a checkpoint of 137 MB as bfloat16 with an adapter."""
    sizes = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 8, "head_dim": 128}
    base = write_checkpoint(tmp_path / "big", "remask", num_hidden_layers=2, num_key_value_heads=8, **sizes)
    generator = torch.Generator().manual_seed(0)
    pairs = {
        name.removesuffix(".weight"): (
            torch.randn(8, matrix.shape[1], generator=generator),
            torch.randn(matrix.shape[0], 8, generator=generator),
        )
        for name, matrix in load_file(base / "model.safetensors").items()
        if name.endswith("_proj.weight")
    }
    adapter = write_adapter(tmp_path / "a", pairs, r=8)
    program = (
        "import gc, re, sys\n"
        "from pathlib import Path\n"
        "from remask.engine.models.model import Model\n"
        "def status(name): return int(re.search(name + r':\\s+(\\d+)', open('/proc/self/status').read())[1]) * 1024\n"
        "def load(): return Model.load(Path(sys.argv[1]), adapter=Path(sys.argv[2]), dtype='bfloat16')\n"
        "load(); gc.collect()\n"  # what libraries keep for themselves is not counted
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before = status('VmRSS')\n"
        "model = load()\n"
        "print(status('VmHWM') - before)"
    )
    command = [sys.executable, "-c", program, str(base), str(adapter)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    held = (base / "model.safetensors").stat().st_size / 2
    largest = 4 * 1024 * 4096  # bytes of the largest stored matrix
    assert int(done.stdout) < held + 2.5 * largest
