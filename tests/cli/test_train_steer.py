"""`remask train steer` and `--steer`, from files to a completion."""

import json

import pytest
from checkpoints import write_checkpoint

from remask.cli.main import run_command


@pytest.fixture
def files(tmp_path):
    write_checkpoint(tmp_path / "base", "remask")
    (tmp_path / "one.py").write_text("aaaa = bbbb\n" * 4)
    (tmp_path / "other.py").write_text("def f(x):\n    return [x]\n" * 3)
    return tmp_path


def train(files, *more, out="v.safetensors"):
    command = ["train", "steer", "--with", files / "one.py", "--without", files / "other.py", "--out", files / out]
    return run_command([str(part) for part in (*command, "--model", files / "base", "--dtype", "float32", *more)])


def test_a_vector_is_made_and_used(files, capsys):
    assert train(files, "--layer", "0", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["layer"], facts["file"]) == (0, str(files / "v.safetensors"))
    ask = ["complete", files / "one.py", "--at", "1:8", "--model", files / "base", "--dtype", "float32", "--no-cache"]
    ask = [str(part) for part in (*ask, "--json", "--max-tokens", "4")]
    assert run_command(ask) == 0
    plain = json.loads(capsys.readouterr().out)
    assert run_command([*ask, "--steer", f"{files / 'v.safetensors'}:8"]) == 0
    steered = json.loads(capsys.readouterr().out)
    assert plain["prompt"] == steered["prompt"]
    assert run_command([*ask, "--steer", f"{files / 'v.safetensors'}:0"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == plain["text"]


def test_it_says_what_it_made(files, capsys):
    assert train(files) == 0
    said = capsys.readouterr().out
    assert said.startswith("Behind layer 0, from ")
    assert f"Use it with --steer {files / 'v.safetensors'}[:strength]." in said


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (("--layer", "7"), 2, "layer is 0 to 1"),
        (("--with", "nowhere.py"), 2, "no file nowhere.py"),
        (("--steer", "a.safetensors"), 2, "leave --steer out"),
    ],
)
def test_wrong_wishes_are_one_sentence(files, capsys, more, code, says):
    assert train(files, *more) == code
    assert says in capsys.readouterr().err
    assert not (files / "v.safetensors").exists()


def test_the_file_is_named_as_what_it_is(files, capsys):
    assert train(files, out="v.bin") == 2
    assert train(files, out="nowhere/v.safetensors") == 5
    assert "no folder" in capsys.readouterr().err
