"""`remask bench decode`: rows, ratio, and exactness in float32."""

import json

import pytest
from tiny import tiny_model

from remask.cli.main import run_command
from remask.engine.evaluation.bench import bench_decode, sample_holes


def test_holes_are_the_same_every_time_and_cut_out_something():
    holes = sample_holes(12)
    assert len(holes) == 12
    assert holes == sample_holes(12)
    assert all(h.suffix.startswith("\n") for h in holes)


def test_report_of_a_tiny_model():
    report = bench_decode(tiny_model(), sample_holes(6), ["default", "parallel"], max_tokens=12).to_dict()
    assert [r["policy"] for r in report["rows"]] == ["autoregressive", "default", "parallel"]
    assert report["same_text"] == report["rows"][1]["same_text"] == 1.0
    assert report["rows"][0]["tpf"] <= 1.0
    assert report["speedup"] == pytest.approx(report["rows"][1]["tok_s"] / report["rows"][0]["tok_s"], rel=0.01)
    assert all(d["policy"] == "parallel" and d["margin"] >= 0 for d in report["differences"])


@pytest.mark.model
def test_default_model_in_float32_writes_the_same_text(capsys):
    assert run_command(["bench", "decode", "--prompts", "4", "--max-tokens", "12", "--dtype", "float32", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["same_text"] == 1.0
    assert report["differences"] == []
