"""Each family: the spec out of its published files, and the same logits as transformers with the family's mask."""

import json

import pytest
import torch
from checkpoints import BASE, PUBLISHED, byte_tokenizer, random_tensors, token, write_checkpoint
from safetensors.torch import save_file

from remask.contract.errors import ModelError
from remask.engine.models.config import dense_shape
from remask.engine.models.families import FAMILIES
from remask.engine.models.model import Model
from remask.engine.models.passes import Pass
from remask.engine.models.read_spec import read_spec
from remask.engine.models.spec import Layout, Regime
from remask.engine.models.transformer import Transformer

transformers = pytest.importorskip("transformers")

CPU = torch.device("cpu")
TOKENS = [(7 * i * i + 3 * i) % 256 for i in range(24)]

ARCHITECTURES = {
    "LlamaForCausalLM": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "Qwen2ForCausalLM": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "Qwen3ForCausalLM": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
}


def published_logits(architecture, weights, tokens, visible):
    """What transformers computes for one row with a plain mask: [T, vocab]."""
    config_class, model_class = ARCHITECTURES[architecture]
    values = {k: v for k, v in BASE.items() if k != "rope_theta"}
    config = config_class(**values, rope_parameters={"rope_type": "default", "rope_theta": BASE["rope_theta"]})
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not missing
    assert not unexpected
    added = torch.zeros(len(tokens), len(tokens)).masked_fill(~visible, torch.finfo(torch.float32).min)
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), attention_mask=added[None, None]).logits[0]


def causal(count):
    return torch.ones(count, count, dtype=torch.bool).tril()


def blocks(count, size):
    number = torch.arange(count) // size
    return number[:, None] >= number[None, :]


def canvas_behind(context, count):
    visible = causal(count)
    visible[context:, context:] = True
    return visible


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("visible", "passes"),
    [
        (causal(24), lambda t: [Pass.causal(t, 0, CPU)]),
        (causal(24), lambda t: [Pass.causal(t[:9], 0, CPU), Pass.causal(t[9:], 9, CPU)]),
        (blocks(24, 4), lambda t: [Pass.block_causal(t[:12], 0, 4, CPU), Pass.block_causal(t[12:], 12, 4, CPU)]),
        (canvas_behind(17, 24), lambda t: [Pass.causal(t[:17], 0, CPU), Pass.canvas(t[17:], 17, CPU)]),
        (torch.ones(24, 24, dtype=torch.bool), lambda t: [Pass.canvas(t, 0, CPU)]),
    ],
    ids=["causal", "causal in two", "block-causal", "canvas", "bidirectional"],
)
def test_same_logits_as_transformers(architecture, visible, passes):
    weights = random_tensors(BASE | {"architectures": [architecture], "model_type": architecture[:5].lower()})
    known = FAMILIES[architecture]
    shape = dense_shape(BASE, qkv_bias=known.qkv_bias, qk_norm=known.qk_norm)
    transformer = Transformer(shape, weights)
    cache, rows = transformer.new_cache(), []
    for step in passes(TOKENS):
        rows.append(transformer.logits(transformer.forward(step, cache)))
        cache.advance(len(step.tokens))
    want = published_logits(architecture, weights, TOKENS, visible)
    torch.testing.assert_close(torch.cat(rows), want, atol=1e-5, rtol=1e-5)


def test_reordered_tokens_are_causal_in_their_order_with_true_positions():
    """Physical order 0 1 3 | 2 4: token 3 is read before the mask at 2, each with its own rotary position."""
    weights = random_tensors(BASE | {"architectures": ["Qwen3ForCausalLM"]})
    shape = dense_shape(BASE, qkv_bias=False, qk_norm=True)
    transformer = Transformer(shape, weights)
    order = [0, 1, 3, 2, 4]
    tokens = [TOKENS[i] for i in order]
    got = transformer.logits(transformer.forward(Pass.ordered(tokens, order, CPU), transformer.new_cache()))
    visible = torch.zeros(5, 5, dtype=torch.bool)
    for row, seen in {0: [0], 1: [0, 1], 3: [0, 1, 3], 2: [0, 1, 3, 2], 4: [0, 1, 3, 2, 4]}.items():
        visible[row, seen] = True
    want = published_logits("Qwen3ForCausalLM", weights, TOKENS[:5], visible)[order]
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


EXPECTED = {
    "remask": (Regime.CAUSAL, 1, 8, Layout.SUFFIX_PREFIX, "<|mask|>", True),
    "fast-dllm-v2": (Regime.BLOCK_CAUSAL, 1, 32, Layout.CHAT, "|<MASK>|", False),
    "sdar": (Regime.BLOCK_CAUSAL, 0, 4, Layout.CHAT, "<|MASK|>", False),
    "wedlm": (Regime.STRICT_CAUSAL, 0, 16, Layout.CHAT, "<|mask|>", True),
    "dream": (Regime.BIDIRECTIONAL, 1, 32, Layout.HOLE, "<|mask|>", False),
    "dreamon": (Regime.BIDIRECTIONAL, 1, 32, Layout.HOLE, "<|mask|>", False),
    "open-dcoder": (Regime.BIDIRECTIONAL, 1, 32, Layout.HOLE, "<|mask|>", False),
    "tiny-a2d": (Regime.BLOCK_CAUSAL, 0, 8, Layout.CHAT, "<|mask|>", False),
    "tiny-a2d-mdlm": (Regime.BIDIRECTIONAL, 0, 32, Layout.HOLE, "<|mask|>", False),
}


@pytest.mark.parametrize("family", PUBLISHED)
def test_spec_comes_from_the_published_files(tmp_path, family):
    spec = read_spec(write_checkpoint(tmp_path / family, family), byte_tokenizer())
    regime, shift, block, layout, mask, verifies = EXPECTED[family]
    assert (spec.family, spec.regime, spec.shift, spec.block_size) == (family, regime, shift, block)
    assert (spec.layout, spec.mask_id, spec.verifies) == (layout, token(mask), verifies)


def test_mask_id_of_the_config_wins_over_names(tmp_path):
    folder = write_checkpoint(tmp_path / "x", "sdar", mask_token_id=7)
    assert read_spec(folder, byte_tokenizer()).mask_id == 7


def test_block_size_of_the_config_wins_over_the_habit(tmp_path):
    assert read_spec(write_checkpoint(tmp_path / "x", "sdar", block_size=16), byte_tokenizer()).block_size == 16


def test_expand_and_delete_come_from_the_generation_config(tmp_path):
    spec = read_spec(write_checkpoint(tmp_path / "x", "dreamon"), byte_tokenizer())
    assert (spec.expand_id, spec.delete_id) == (token("<|expand|>"), token("<|delete|>"))


@pytest.mark.parametrize("family", PUBLISHED)
@pytest.mark.parametrize("shards", [1, 3])
def test_round_trip_through_safetensors(tmp_path, family, shards):
    folder = write_checkpoint(tmp_path / "x", family, shards=shards)
    model = Model.load(folder, dtype="float32")
    weights = random_tensors(json.loads((folder / "config.json").read_text()))
    assert torch.equal(
        model.transformer.logits(torch.eye(32)), Transformer(model.spec.shape, weights).logits(torch.eye(32))
    )


def test_a_head_that_is_stored_is_used_whatever_the_flag_says(tmp_path):
    """Tiny-A2D checkpoints untie the head and leave tie_word_embeddings as it was."""
    folder = write_checkpoint(tmp_path / "x", "tiny-a2d")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    untied = Model.load(folder, dtype="float32").transformer
    weights = random_tensors(config)
    torch.testing.assert_close(untied.logits(torch.eye(32)), Transformer(untied.shape, weights).logits(torch.eye(32)))


@pytest.mark.parametrize("kind", ["Qwen2", "Qwen3"])
def test_wedlm_loads_both_of_its_kinds(tmp_path, kind):
    """7B has Qwen2's biases and 8B Qwen3's norms under one architecture: what is stored decides."""
    folder = write_checkpoint(tmp_path / "x", "wedlm")
    weights = random_tensors(BASE | {"architectures": [f"{kind}ForCausalLM"]}, seed=5)
    save_file(weights, folder / "model.safetensors")
    model = Model.load(folder, dtype="float32")
    got = model.transformer.logits(
        model.transformer.forward(Pass.causal(TOKENS, 0, CPU), model.transformer.new_cache())
    )
    want = published_logits(f"{kind}ForCausalLM", weights, TOKENS, causal(len(TOKENS)))
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


def test_foreign_quantisations_are_refused_not_read_wrong(tmp_path):
    folder = write_checkpoint(tmp_path / "x", "sdar")
    weights = random_tensors(BASE | PUBLISHED["sdar"])
    name = "model.layers.0.self_attn.q_proj.weight"
    scaled = weights | {name: weights[name].to(torch.float8_e4m3fn), f"{name}_scale": torch.ones(32)}
    save_file(scaled, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"quantised in a way|does not read"):
        Model.load(folder, dtype="float32")
    save_file(weights | {name: weights[name].to(torch.int32)}, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"stored as torch\.int32"):
        Model.load(folder, dtype="float32")


def test_both_files_end_tokens_count_and_a_null_says_nothing(tmp_path):
    folder = write_checkpoint(tmp_path / "x", "sdar", eos_token_id=7, mask_token_id=None)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [8, 9], "mask_token_id": 5}))
    spec = read_spec(folder, byte_tokenizer())
    assert {7, 8, 9} <= set(spec.end_ids)
    assert spec.mask_id == 5


@pytest.mark.parametrize(
    ("family", "changes", "sentence"),
    [
        ("dream", {"architectures": ["LLaDAModelLM"], "auto_map": None}, "code of its own"),
        ("dream", {"architectures": ["Mamba"]}, "cannot run the architecture Mamba|code of its own"),
        ("remask", {"remask": "yes"}, "not an object"),
        ("remask", {"architectures": ["Qwen3ForCausalLM"], "remask": {}}, "lacks 'prefix_token'"),
        ("sdar", {"mask_token_id": 99999}, "outside the vocabulary"),
        ("sdar", {"block_size": 0}, "block_size is a whole number above 0"),
        ("sdar", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "kind 'yarn'"),
        ("sdar", {"use_sliding_window": True}, "sliding-window"),
        ("sdar", {"hidden_act": "gelu"}, "activation 'gelu'"),
        ("sdar", {"hidden_size": None}, "hidden_size"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(tmp_path, family, changes, sentence):
    folder = write_checkpoint(tmp_path / "x", family)
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=sentence) as raised:
        read_spec(folder, byte_tokenizer())
    assert "\n" not in str(raised.value)


def test_a_tokenizer_without_the_named_tokens_is_one_sentence(tmp_path):
    from tokenizers import Tokenizer, models

    folder = write_checkpoint(tmp_path / "x", "sdar")
    with pytest.raises(ModelError, match="no mask token"):
        read_spec(folder, Tokenizer(models.BPE()))
    folder = write_checkpoint(tmp_path / "y", "remask")
    with pytest.raises(ModelError, match="no token"):
        read_spec(folder, Tokenizer(models.BPE()))
