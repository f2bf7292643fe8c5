"""`remask bench gpu` where there is no card: what it would do, in small."""

import json

import pytest
import torch

from remask.cli.main import run_command
from remask.contract.errors import ModelError
from remask.engine.evaluation import bench_gpu as module
from remask.engine.evaluation.bench_gpu import DRY, bench_gpu

pytest.importorskip("transformers", reason="transformers is not installed (remask[gemma])")

CPU = torch.device("cpu")


def test_every_part_is_tried_whatever_fails(monkeypatch):
    monkeypatch.setattr("remask.engine.evaluation.bench_pass.PROBE_BYTES", 2**16)
    monkeypatch.setattr("remask.engine.evaluation.bench_pass.PROBE_SIZE", 32)
    monkeypatch.setattr("remask.engine.models.model.native_library", lambda: None)
    lines = list(bench_gpu(CPU, DRY))
    kinds = ["machine", "skipped", "pass", "pass", "batch", "batch", "skipped", "pass", "pass"]
    assert [line["kind"] for line in lines] == kinds
    assert "do not run on cpu" in lines[1]["why"]
    assert [(line["sequences"], line["tokens"]) for line in lines[4:6]] == [(1, 4), (3, 4)]
    assert (lines[6]["what"], "int8" in lines[6]["why"]) == ("tiny int8", True)
    passes = [line for line in lines if line["kind"] == "pass"]
    assert [(line["model"], line["tokens"]) for line in passes] == [
        (name, tokens) for name in ("tiny", "tiny-gemma") for tokens in (1, 4)
    ]
    assert all(line["random_weights"] and line["passes_a_second"] > 0 for line in passes)

    def refuse(*_):
        raise ModelError("The shape tiny needs 9 GB")

    monkeypatch.setattr(module, "random_transformer", refuse)
    assert list(bench_gpu(CPU, DRY))[-1] == {
        "kind": "skipped",
        "what": "tiny-gemma",
        "why": "The shape tiny needs 9 GB",
    }

    def fail(*_):
        raise RuntimeError("a driver")

    monkeypatch.setattr(module, "random_transformer", fail)
    assert list(bench_gpu(CPU, DRY))[-1]["kind"] == "failed"


def test_what_is_not_begun_in_time_is_named():
    lines = list(bench_gpu(CPU, DRY, seconds=-1.0))
    assert [line["kind"] for line in lines] == ["machine", *["left out"] * 4]
    assert [line["what"] for line in lines[1:]] == ["kernels", "tiny", "tiny int8", "tiny-gemma"]


def test_lines_go_to_a_file_and_a_card_that_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("remask.engine.evaluation.bench_pass.PROBE_BYTES", 2**16)
    out = tmp_path / "lines.jsonl"
    assert run_command(["bench", "gpu", "--dry-run", "--tokens", "2", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {line.get("tokens") for line in lines if line["kind"] == "pass"} == {2}
    assert run_command(["bench", "gpu", "--dry-run", "--out", str(tmp_path / "no" / "lines")]) != 0
    if not torch.cuda.is_available():
        assert run_command(["bench", "gpu"]) == 2
        assert "not available" in capsys.readouterr().err
