"""The spec is read from the checkpoint, and everything it lacks is one sentence."""

import json

import pytest

from remask.contract.errors import ModelError
from remask.engine.models.choice import DEFAULT_MODEL
from remask.engine.models.read_spec import read_spec
from remask.engine.models.spec import Regime


class Names:
    """A tokenizer as far as a spec asks: ids by name."""

    def token_to_id(self, text):
        return {"<|endoftext|>": 0, "<|suffix|>": 10, "<|prefix|>": 11, "<|mask|>": 16, "<|spare|>": 17}.get(text)


@pytest.fixture
def config():
    return json.loads((DEFAULT_MODEL / "config.json").read_text())


def read(folder, config):
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return read_spec(folder, Names())


def test_default_model(tmp_path, config):
    spec = read(tmp_path, config)
    assert (spec.mask_id, spec.end_ids, spec.prefix_id, spec.suffix_id) == (16, (0,), 11, 10)
    assert (spec.regime, spec.shift, spec.verifies, spec.block_size) == (Regime.CAUSAL, 1, True, 8)
    assert (spec.shape.layers, spec.shape.width, spec.shape.heads, spec.shape.kv_heads) == (30, 576, 9, 3)


def test_mask_comes_from_the_checkpoint(tmp_path, config):
    config["remask"]["mask_token"] = "<|spare|>"
    assert read(tmp_path, config).mask_id == 17


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda c: c.pop("hidden_size"), "lacks 'hidden_size'"),
        (lambda c: c.update(architectures=5), "cannot run the architecture none"),
        (lambda c: c.update(num_key_value_heads=-3), "num_key_value_heads is a whole number above 0"),
        (lambda c: c.update(rope_theta=0), "rope_theta is above 0"),
        (lambda c: c.update(hidden_size=0), "hidden_size is a whole number above 0"),
        (lambda c: c.update(hidden_size="many"), "hidden_size is a whole number above 0"),
        (lambda c: c.update(num_key_value_heads=2), "cannot share 2 KV heads"),
        (lambda c: c.update(architectures=["MambaForCausalLM"]), "cannot run the architecture MambaForCausalLM"),
        (lambda c: c.update(architectures=None), "cannot run the architecture none"),
        (lambda c: c.update(auto_map={"AutoModel": "x.py"}, architectures=["X"]), "runs code of its own"),
        (lambda c: c.pop("remask"), "was not adapted to denoising"),
        (lambda c: c["remask"].pop("prefix_token"), "lacks 'prefix_token'"),
        (lambda c: c["remask"].update(regime="sideways"), "wrong value"),
        (lambda c: c["remask"].update(mask_token="<|hole|>"), "no token '<|hole|>'"),
        (lambda c: c["remask"].update(end_tokens=7), "wrong value"),
        (lambda c: c["remask"].update(end_tokens=[]), "end_tokens is a list"),
        (lambda c: c["remask"].update(end_tokens="abc"), "end_tokens is a list"),
        (lambda c: c["remask"].update(mask_token="<|endoftext|>"), "mask token also ends"),
        (lambda c: c["remask"].update(shift=-1), "not shifted by -1"),
        (lambda c: c["remask"].update(shift=0), "not shifted by 0"),
        (lambda c: c["remask"].update(regime="strict_causal"), "not shifted by 1"),
        (lambda c: c["remask"].update(regime="bidirectional"), "cannot verify"),
        (lambda c: c["remask"].update(regime="uniform", verifies=False), "only DiffusionGemma"),
        (lambda c: c["remask"].update(verifies="no"), "verifies is true or false"),
        (lambda c: c["remask"].update(sub_block=-3), "wrong value"),
        (lambda c: c["remask"].update(block_size=10**8), "wrong value"),
        (lambda c: c["remask"].update(context_tokens=float("inf")), "wrong value"),
        (lambda c: c.update(rope_scaling="yarn"), "rope_scaling is an object"),
        (lambda c: c.update(rope_theta=float("nan")), "rope_theta is above 0"),
        (lambda c: c.update(rms_norm_eps=-1), "rms_norm_eps is above 0"),
        (lambda c: c.update(vocab_size=10**30), "absurdly large"),
        (lambda c: c.update(num_experts=8), "mixtures of experts"),
        (lambda c: c.update(quantization_config={"quant_method": "fp8"}), "quantised"),
    ],
)
def test_what_cannot_be_run(tmp_path, config, spoil, sentence):
    spoil(config)
    with pytest.raises(ModelError, match=sentence):
        read(tmp_path, config)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", "[" * 100_000])
def test_damaged_config(tmp_path, text):
    with pytest.raises(ModelError, match=r"config\.json"):
        read(tmp_path, text)


def test_missing_config(tmp_path):
    with pytest.raises(ModelError, match="missing"):
        read_spec(tmp_path, Names())
