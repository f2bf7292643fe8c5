"""`remask eval syntax` and `remask eval faults`: what they print, and how they fail."""

import json

import pytest
from tiny import tiny_model

from remask.cli.main import run_command
from remask.engine.api import Engine

SOURCE = "def area(side):\n    height = (side + 1)\n    return height * (side - 2)\n" * 4
SCRIPT = "function area(side) {\n  let height = (side + 1);\n  return height * (side - 2);\n}\n" * 4


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("remask.cli.eval_judges.load_engine", lambda *_, **__: Engine(tiny_model()))
    (tmp_path / "shapes.py").write_text(SOURCE)
    (tmp_path / "shapes.js").write_text(SCRIPT)
    return tmp_path


def run(command, folder, *arguments):
    return run_command(["eval", command, "--data", str(folder), *arguments])


def test_syntax_as_json_and_as_a_table(folder, capsys):
    few = ("--limit", "2", "--max-tokens", "4")
    assert run("syntax", folder, *few, "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in values["rows"]] == ["default", "parallel", "parallel:remask=off"]
    assert all(sum(row[kind].values()) == row["n"] == 2 for row in values["rows"] for kind in ("drafts", "shown"))
    assert (values["languages"], values["isolation"]) == ({"javascript": 1, "python": 1}, "")
    assert run("syntax", folder, *few, "--language", "python", "--policy", "parallel", "--processor-time") == 0
    out = capsys.readouterr().out
    assert "line-end: tiny" in out
    assert "of decoding (" in out


def test_faults_as_json_and_as_a_table(folder, capsys):
    few = ("--limit", "2", "--block", "16")
    assert run("faults", folder, *few, "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert [(row["sees"], row["broken"], row["n"]) for row in values["rows"]] == [
        (sees, broken, 2) for sees in ("beginning", "file") for broken in (True, False)
    ]
    assert run("faults", folder, *few) == 0
    assert "2 blocks of 16 tokens, 25% masked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "arguments", "sentence"),
    [
        ("syntax", ["--split", "lines"], "There is no split 'lines'"),
        ("syntax", ["--language", "klingon"], "There is no language 'klingon'"),
        ("syntax", ["--policy", "parallel:threshold=2"], "threshold is 0 to 1, not 2"),
        ("faults", ["--policy", "default"], "The policy 'default' verifies"),
        ("faults", ["--block", "4"], "Invalid value for '--block'"),
        ("faults", ["--masked", "1.5"], "Invalid value for '--masked'"),
        ("faults", ["--language", "go"], "no source file in go"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(folder, capsys, command, arguments, sentence):
    assert run(command, folder, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
