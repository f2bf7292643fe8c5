"""`remask bench pass`: every size once, with floors and ratios that fit together."""

import json

import pytest
import torch
from tiny import SHAPE, random_weights, tiny_model

from remask.cli.main import run_command
from remask.contract.errors import InputError
from remask.engine.evaluation import bench_pass as module
from remask.engine.evaluation.bench_pass import SHAPES, bench_pass, random_transformer
from remask.engine.evaluation.plain_pass import PlainTransformer


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
    assert set(SHAPES) == {*billions, "tiny"}
    for name, size in billions.items():
        assert SHAPES[name].parameters / 1e9 == pytest.approx(size, rel=0.02)


def test_a_shape_that_is_not_known_is_said():
    with pytest.raises(InputError, match="not known"):
        random_transformer("qwen9", torch.float32, torch.device("cpu"))


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
