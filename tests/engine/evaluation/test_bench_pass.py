"""`remask bench pass`: every size once, with floors and ratios that fit together."""

import json

import pytest
import torch
from tiny import SHAPE, random_weights, tiny_model

from remask.cli.main import run_command
from remask.contract.errors import InputError, ModelError
from remask.engine.evaluation import bench_pass as module
from remask.engine.evaluation.bench_pass import bench_pass
from remask.engine.evaluation.plain_pass import PlainTransformer
from remask.engine.evaluation.random_gemma import random_gemma
from remask.engine.evaluation.shapes import SHAPES, random_transformer
from remask.engine.evaluation.shapes import random_weights as weights_named

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _small_probes(monkeypatch):
    monkeypatch.setattr(module, "PROBE_BYTES", 2**16)
    monkeypatch.setattr(module, "PROBE_SIZE", 32)


def test_every_size_is_timed_with_its_floors():
    plain = PlainTransformer(SHAPE, random_weights())
    done = []
    report = bench_pass(
        "tiny",
        tiny_model().transformer,
        plain,
        contexts=(0, 40),
        blocks=(1, 4),
        repeats=2,
        processor_time=True,
        advance=lambda: done.append(1),
    )
    assert [(r.context, r.tokens) for r in report.rows] == [(0, 1), (0, 4), (40, 1), (40, 4)]
    assert len(done) == 2 * (2 + module.WARM_UP)
    for row in report.rows:
        assert row.ms > 0
        assert row.baseline_ms > 0
        assert row.speedup == pytest.approx(row.baseline_ms / row.ms, rel=0.05)
        assert row.floor_operations_ms >= 0
    assert [r.to_one for r in report.rows if r.tokens == 1] == [1.0, 1.0]
    assert report.to_dict()["rows"][0]["context"] == 0


def test_floors_grow_with_what_is_read_and_multiplied():
    transformer = tiny_model().transformer
    report = module.PassReport("tiny", False, "float32", "cpu", 1, 0.0, False, bandwidth_gb_s=1.0, gflop_s=1.0)
    weights = sum(w.numel() for n, w in random_weights().items() if w.ndim == 2)
    read, multiplied = module._floors(transformer, 1, 0, report)
    assert read * 1e6 == pytest.approx(4 * weights + 4 * SHAPE.kv_values_per_token)
    assert multiplied * 1e6 == pytest.approx(2 * weights + 4 * SHAPE.layers * SHAPE.heads * SHAPE.head_dim)
    longer, _ = module._floors(transformer, 1, 100, report)
    assert longer > read


def test_published_shapes_have_their_published_sizes():
    billions = {"smollm2-135m": 0.1345, "qwen2.5-0.5b": 0.494, "qwen2.5-1.5b": 1.54, "qwen2.5-7b": 7.6, "qwen3-8b": 8.2}
    billions["diffusiongemma-26b-a4b"] = 25.2
    assert set(SHAPES) == {*billions, "tiny", "tiny-gemma"}
    for name, size in billions.items():
        assert SHAPES[name].parameters / 1e9 == pytest.approx(size, rel=0.02)


def test_a_shape_that_is_not_known_is_said():
    with pytest.raises(InputError, match="not known"):
        random_transformer("qwen9", torch.float32, torch.device("cpu"))


def test_a_mixture_of_experts_is_timed_through_transformers(capsys):
    pytest.importorskip("transformers")
    report = bench_pass(
        "tiny-gemma", random_transformer("tiny-gemma", torch.float32, CPU), contexts=(0, 20), blocks=(1, 4), repeats=1
    )
    assert [(r.context, r.tokens) for r in report.rows] == [(0, 1), (0, 4), (20, 1), (20, 4)]
    command = ["bench", "pass", "--shape", "tiny-gemma", "--dtype", "float32", "--context", "8", "--tokens", "2"]
    assert run_command([*command, "--repeats", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["random_weights"]
    assert run_command([*command, "--baseline"]) == 2
    assert "no plain pass" in capsys.readouterr().err


def test_of_a_mixture_those_experts_count_that_tokens_meet():
    pytest.importorskip("transformers")
    transformer, shape = random_transformer("tiny-gemma", torch.float32, CPU), SHAPES["tiny-gemma"]
    report = module.PassReport("tiny", True, "float32", "cpu", 1, 0.0, False, bandwidth_gb_s=1.0, gflop_s=1.0)
    one, many = (module._floors(transformer, tokens, 0, report)[0] * 1e6 for tokens in (1, 200))
    kept = 4 * shape.kv_values_per_token
    dense = 4 * (shape.parameters - shape.expert_parameters)
    assert one == pytest.approx(dense + 4 * shape.expert_parameters * 2 / 4 + kept)
    assert many == pytest.approx(dense + 4 * shape.expert_parameters + 200 * kept)


def test_encoder_and_decoder_of_random_weights_share_theirs():
    pytest.importorskip("transformers")
    network = random_transformer("tiny-gemma", torch.bfloat16, CPU).network
    halves = network.model.encoder.language_model, network.model.decoder
    assert len({id(half.layers[0].mlp.up_proj.weight) for half in halves}) == 1
    assert not any(p.is_meta for p in network.parameters())
    assert {p.dtype for p in network.parameters()} == {torch.bfloat16}


def test_a_shape_that_does_not_fit_is_said_before_it_is_made(monkeypatch):
    monkeypatch.setattr("remask.engine.evaluation.random_gemma._free", lambda _: 10**9)
    with pytest.raises(ModelError, match=r"needs 50\.\d GB, and cpu has 1\.0 GB free"):
        random_transformer("diffusiongemma-26b-a4b", torch.bfloat16, CPU)
    with pytest.raises(InputError, match="8 bits"):
        random_gemma("any", SHAPES["tiny-gemma"], torch.int8, CPU)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn], ids=["int8", "fp8"])
def test_random_weights_of_eight_bits(dtype):
    weights = weights_named("tiny", dtype, CPU)
    name = "model.layers.1.mlp.down_proj.weight"
    assert weights[name].dtype == dtype
    assert weights[f"{name}_scale"].shape == weights[name].shape[:1]
    assert weights["model.norm.weight"].dtype == torch.float32


@pytest.mark.model
def test_command_line(capsys):
    command = [
        "bench",
        "pass",
        "--context",
        "0",
        "--tokens",
        "1",
        "--tokens",
        "2",
        "--repeats",
        "1",
        "--baseline",
        "--json",
    ]
    assert run_command(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["tokens"] for row in report["rows"]] == [1, 2]
    assert not report["random_weights"]
