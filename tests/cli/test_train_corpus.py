"""`remask train corpus`: from a repository to a corpus, and how bad input ends."""

import json

import pytest

from remask.cli.main import run_command
from remask.engine.training.corpus.store import load_corpus

CODE = "".join(
    f'def total_{n}(values):\n    """The sum of all values, {n} times."""\n    result_{n} = 0\n    for v in values:\n'
    f"        result_{n} += v * {n}\n    return result_{n}\n\n\n"
    for n in range(12)
)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sums.py").write_text(CODE)
    return folder


def test_a_corpus_of_ones_own_code(tmp_path, repository, capsys):
    out = tmp_path / "corpus"
    assert run_command(["train", "corpus", "--out", str(out), "--repo", str(repository), "--row-tokens", "256"]) == 0
    said = capsys.readouterr().out
    rows = load_corpus(out).splits["train"].tokens
    assert rows.shape[1] == 256
    assert f"train: {len(rows)} rows" in said
    assert "Files left out: none." in said


def test_longer_rows_hold_examples_of_the_same_lengths(tmp_path, repository, capsys):
    arguments = ["train", "corpus", "--repo", str(repository), "--out"]
    assert run_command([*arguments, str(tmp_path / "short")]) == 0
    assert run_command([*arguments, str(tmp_path / "long"), "--row-tokens", "1024"]) == 0
    short, long = (load_corpus(tmp_path / name) for name in ("short", "long"))
    assert long.splits["train"].tokens.shape[1] == 1024
    assert long.manifest["splits"]["train"]["tokens"] == short.manifest["splits"]["train"]["tokens"]


def test_json(tmp_path, repository, capsys):
    arguments = ["train", "corpus", "--out", str(tmp_path / "corpus"), "--repo", str(repository), "--json"]
    assert run_command(arguments) == 0
    assert json.loads(capsys.readouterr().out) == load_corpus(tmp_path / "corpus").manifest


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--repo", "{none}"], 2, "no folder"),
        (["--repo", "{repo}", "--pins", "{none}"], 2, "not of both"),
        (["--pins", "{none}"], 2, "cannot be read"),
        (["--repo", "{repo}", "--eval-data", "{none}"], 2, "evaluation data"),
        (["--repo", "{repo}", "--model", "{none}"], 2, "no checkpoint"),
        (["--repo", "{repo}", "--row-tokens", "1"], 2, "row-tokens"),
        (["--repo", "{repo}", "--out", "{repo}"], 2, "holds other files"),
        (["--repo", "{repo}", "--out", "{repo}/sums.py/corpus"], 5, "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, repository, capsys, options, code, says):
    named = [o.format(none=tmp_path / "none", repo=repository) for o in options]
    assert run_command(["train", "corpus", "--out", str(tmp_path / "corpus"), *named]) == code
    captured = capsys.readouterr()
    assert says in captured.err
    assert "Traceback" not in captured.err
    assert not list((tmp_path / "corpus").glob("*"))
    assert [p.name for p in repository.iterdir()] == ["sums.py"]
