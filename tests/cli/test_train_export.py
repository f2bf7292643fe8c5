"""`remask train export` and `remask train prepare`: a folder and one line each, or one sentence."""

import json

import pytest
import torch
from adapters import random_pairs
from checkpoints import write_checkpoint

from remask.cli.main import run_command
from remask.engine.training import checkpoints
from remask.engine.training.checkpoints import Checkpoint
from remask.engine.training.recipe import Recipe


@pytest.fixture
def base(tmp_path):
    return write_checkpoint(tmp_path / "base", "remask")


@pytest.fixture
def run(tmp_path):
    learned = {}
    for name, (a, b) in random_pairs().items():
        learned |= {f"{name}.lora_A.weight": a, f"{name}.lora_B.weight": b}
    facts = {"recipe": Recipe(rank=3).to_dict(), "step": 7, "tokens": 700, "seconds": 70.0}
    checkpoints.save(tmp_path / "run", Checkpoint(learned, {"step": torch.tensor(7.0)}, facts))
    return tmp_path / "run"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "area.py").write_text("def area(width, height):\n    return width * \n")
    return str(tmp_path / "area.py")


def model_of(capsys, file, *options):
    arguments = ["complete", file, "--at", "2:20", "--json", "--max-tokens", "4", "--dtype", "float32", "--no-cache"]
    capsys.readouterr()
    assert run_command([*arguments, *options]) == 0
    return json.loads(capsys.readouterr().out)["model"]


def test_what_is_exported_is_used_as_the_line_says(base, run, file, tmp_path, capsys):
    out, whole = tmp_path / "out", tmp_path / "whole"
    assert run_command(["train", "export", str(run), "--out", str(out), "--base", str(base), "--name", "mine"]) == 0
    line = capsys.readouterr().out
    assert line.startswith("The adapter mine (0.0 MB)")
    assert f"--adapter {out}" in line
    assert run_command(["train", "export", str(run), "--out", str(whole), "--base", str(base), "--merge"]) == 0
    assert f"--model {whole}" in capsys.readouterr().out
    assert model_of(capsys, file, "--model", str(base), "--adapter", str(out)) == "mine"
    assert model_of(capsys, file, "--model", str(whole)) == "base-trained"


def test_an_adapter_over_another_base_is_one_sentence(base, run, file, tmp_path, capsys):
    other = write_checkpoint(tmp_path / "other", "remask", seed=1)
    assert run_command(["train", "export", str(run), "--out", str(tmp_path / "out"), "--base", str(base)]) == 0
    arguments = ["complete", file, "--at", "2:20", "--model", str(other), "--adapter", str(tmp_path / "out")]
    capsys.readouterr()
    assert run_command(arguments) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "was made for other weights (base)" in error


def test_a_run_that_is_not_there(base, tmp_path, capsys):
    assert (
        run_command(["train", "export", str(tmp_path / "no"), "--out", str(tmp_path / "out"), "--base", str(base)]) == 2
    )
    assert "no finished checkpoint" in capsys.readouterr().err


def test_a_plain_checkpoint_is_prepared(base, file, tmp_path, capsys):
    config = json.loads((base / "config.json").read_text())
    del config["remask"]
    (base / "config.json").write_text(json.dumps(config))
    out = tmp_path / "out"
    assert run_command(["train", "prepare", str(base), "--out", str(out), "--name", "mine"]) == 0
    assert "mine (0.000 billion parameters) is ready" in capsys.readouterr().out
    assert model_of(capsys, file, "--model", str(out)) == "mine"
    assert run_command(["train", "prepare", str(out), "--out", str(tmp_path / "again")]) == 2
    assert "is prepared already" in capsys.readouterr().err
