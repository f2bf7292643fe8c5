"""`remask bench decode` and `keystroke`: rows, ratio, and exactness in float32."""

import json
from dataclasses import replace

import pytest
from tiny import SHAPE, SPEC, tiny_model

from remask.cli.main import run_command
from remask.engine.api import Engine
from remask.engine.evaluation.bench import all_policies, bench_decode, sample_holes
from remask.engine.models.spec import Regime


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
    assert all(d["policy"] == "parallel" and not d["exact"] and d["margin"] >= 0 for d in report["differences"])
    assert [(r["policy"], r["language"], r["prompts"]) for r in report["languages"]] == [
        ("default", "python", 6),
        ("parallel", "python", 6),
    ]
    assert report["languages"][0]["same_text"] == 6 >= report["languages"][1]["same_text"]


def test_a_difference_names_both_tokens_their_margin_and_whether_they_are_the_best():
    bounded = "bounded:ratio=0.001,draft=canvas,canvas=4"
    report = bench_decode(tiny_model(), sample_holes(8), [bounded], max_tokens=12, processor_time=True)
    assert report.differences
    for one in report.differences:
        assert one.behind >= one.margin > 0
        assert one.behind == one.margin or not one.best_two
        assert one.baseline != one.other
        assert one.language == "python"
    assert report.processor_time


def test_all_policies_are_those_that_the_weights_can_follow():
    everything = all_policies(SPEC)
    assert {"autoregressive", "auto", "bounded", "one_by_one"} <= set(everything)
    unverified = set(all_policies(replace(SPEC, verifies=False, policy="parallel", regime=Regime.BLOCK_CAUSAL)))
    assert unverified == {"parallel", "confident", "entropy_bound", "one_by_one"}


@pytest.fixture
def tiny_engine(monkeypatch):
    model = tiny_model(spec=replace(SPEC, shape=replace(SHAPE, max_positions=4096)))
    for command in ("bench_decode", "bench_keystroke"):
        monkeypatch.setattr(f"remask.cli.{command}.load_engine", lambda *_, **__: Engine(model))


def test_prompts_of_any_language_come_from_a_folder(tiny_engine, tmp_path, capsys):
    (tmp_path / "a.go").write_text("package a\n\nfunc f(x int) int {\n\treturn x + 1\n}\n" * 5)
    (tmp_path / "b.py").write_text("def f(x):\n    return x + 1\n" * 9)
    arguments = ["bench", "decode", "--data", str(tmp_path), "--prompts", "4", "--max-tokens", "4", "--json"]
    assert run_command(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(r["language"], r["prompts"], r["same_text"]) for r in report["languages"]] == [
        ("go", 2, 2),
        ("python", 2, 2),
    ]
    assert run_command([*arguments, "--all", "--language", "python"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == len({"default", *all_policies(SPEC)})
    assert run_command(["bench", "decode", "--data", str(tmp_path), "--split", "single-line"]) == 2
    assert "made from files" in capsys.readouterr().err


def test_a_keystroke_as_a_table(tiny_engine, capsys):
    arguments = ["bench", "keystroke", "--context", "512", "--keystrokes", "2", "--colds", "1", "--max-tokens", "2"]
    assert run_command(arguments) == 0
    out = capsys.readouterr().out
    starts = ("cold", "warm", "host", "reopened")
    assert [line.split()[:2] for line in out.splitlines()[2:6]] == [["512", start] for start in starts]


@pytest.mark.parametrize("option", ["--steer", "--corrector", "--draft-head", "--adapter", "--model"])
def test_a_keystroke_on_random_weights_refuses_files_that_belong_to_others(option, capsys):
    assert run_command(["bench", "keystroke", "--shape", "smollm2-135m", option, "some.file"]) == 2
    assert f"--shape takes random weights, which {option} does not belong to." in capsys.readouterr().err


@pytest.mark.model
def test_default_model_in_float32_writes_the_same_text(capsys):
    assert run_command(["bench", "decode", "--prompts", "4", "--max-tokens", "12", "--dtype", "float32", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in report["rows"]] == ["autoregressive", "auto", "search"]
    assert report["same_text"] == 1.0
    assert [one for one in report["differences"] if one["exact"]] == []


@pytest.mark.parametrize("option", [["--split", "body"], ["--language", "go"], ["--seed", "0"]])
def test_what_says_which_holes_of_a_folder_needs_a_folder(option, capsys):
    assert run_command(["bench", "decode", "--prompts", "1", *option]) == 2
    assert "--data" in capsys.readouterr().err
