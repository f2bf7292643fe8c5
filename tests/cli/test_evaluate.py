"""`remask eval`: what it prints, what it writes, and how it fails."""

import hashlib
import json

import numpy as np
import pytest
from tiny import END, PREFIX, SUFFIX, scripted_model, tiny_model

from remask.cli.main import run_command
from remask.engine.api import Engine
from remask.engine.models.choice import find_model
from remask.engine.prompt import build_prompt

FIELDS = {
    "split", "n", "pass_rate", "exact_match", "edit_similarity", "parse_rate", "tokens", "forwards", "tpf", "ms_p50",
    "ms_p95", "model", "policy",
}  # fmt: skip
PROMPT, SOLUTION = "def double(x):\n", "    return 2 * x\n"


def entry(number):
    return {
        "task_id": f"T/{number}",
        "entry_point": "double",
        "prompt": PROMPT,
        "suffix": "",
        "canonical_solution": SOLUTION,
        "test": "def check(candidate):\n    assert candidate(4) == 8\n",
    }


@pytest.fixture
def data(tmp_path):
    lines = "".join(json.dumps(entry(i)) + "\n" for i in range(4))
    (tmp_path / "HumanEval-SingleLineInfilling.jsonl").write_text(lines)
    source = "def area(square):\n    side = square.side\n    return side * side\n"
    line = json.dumps({"package": "p", "path": "p/shapes.py", "text": source})
    (tmp_path / "validation.jsonl").write_text(line + "\n")
    return tmp_path


@pytest.fixture(autouse=True)
def model(monkeypatch):
    """A model that writes the right line, whatever the task."""
    right = scripted_model(SOLUTION, len(build_prompt(tiny_model(), PROMPT, "")))
    monkeypatch.setattr("remask.cli.evaluate.load_engine", lambda *_, **__: Engine(right))
    return right


def infilling(data, *arguments):
    return run_command(["eval", "infilling", "--data", str(data), *arguments])


def test_json_of_published_tasks(data, capsys):
    samples = data / "samples.jsonl"
    assert infilling(data, "--limit", "3", "--policy", "default", "--policy", "autoregressive", "--json",
                     "--samples", str(samples)) == 0  # fmt: skip
    out, err = capsys.readouterr()
    values = json.loads(out)
    assert err == ""
    assert values.keys() >= FIELDS
    assert (values["split"], values["n"], values["model"], values["policy"]) == ("single-line", 3, "tiny", "default")
    assert (values["pass_rate"], values["exact_match"], values["parse_rate"]) == (1.0, 1.0, 1.0)
    assert [row["policy"] for row in values["policies"]] == ["default", "autoregressive"]
    assert values["isolation"].startswith("limits, audit hook")
    written = [json.loads(line) for line in samples.read_text().splitlines()]
    assert [(w["policy"], w["text"]) for w in written] == [("default", SOLUTION), ("autoregressive", SOLUTION)] * 3


def test_a_table_for_people(data, capsys):
    assert infilling(data, "--limit", "2") == 0
    out = capsys.readouterr().out
    assert "single-line: tiny, float32 on cpu" in out
    assert "100.0%" in out
    assert "Tests ran under: limits" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_a_split_without_tests_has_no_pass_rate(data, capsys):
    assert infilling(data, "--split", "line-end", "--limit", "2", "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["n"], values["pass_rate"], values["isolation"], values["context"]) == (2, None, "", False)


def test_as_the_editor_shows_it(data, capsys):
    assert infilling(data, "--limit", "1", "--gate", "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["gate"], values["pass_rate"]) == (True, 1.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--split", "lines"], "There is no split 'lines'; there are single-line"),
        (["--split", "multi-line"], "There is no HumanEval-MultiLineInfilling.jsonl in"),
        (["--split", "body"], "have no place for the split 'body'"),
        (["--limit", "0"], "Invalid value for '--limit'"),
        (["--policy", "quick"], "There is no policy 'quick'; there are default"),
        (["--max-tokens", "0"], "Invalid value for '--max-tokens'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(data, capsys, arguments, sentence):
    (data / "validation.jsonl").write_text(json.dumps({"package": "p", "path": "p.py", "text": "x = 1\n"}) + "\n")
    assert infilling(data, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1


def test_a_missing_folder_is_one_sentence(tmp_path, capsys):
    assert infilling(tmp_path / "nowhere") == 2
    assert "There is no folder" in capsys.readouterr().err
    assert run_command(["eval", "tokens", "--data", str(tmp_path)]) == 2
    assert "There is no corpus in" in capsys.readouterr().err


def test_ctrl_c_prints_what_was_done(data, capsys, monkeypatch):
    from remask.engine.evaluation.fill import OwnText

    fill, calls = OwnText.fill, []

    def interrupted(self, task, policy):
        calls.append(task.name)
        if len(calls) == 4:  # the first one warms up
            raise KeyboardInterrupt
        return fill(self, task, policy)

    monkeypatch.setattr(OwnText, "fill", interrupted)
    assert infilling(data, "--json") == 130
    values = json.loads(capsys.readouterr().out)
    assert (values["n"], values["tasks"], values["interrupted"]) == (2, 4, True)
    calls.clear()
    assert infilling(data) == 130
    assert "Interrupted: 2 of 4 tasks are done." in capsys.readouterr().out


def test_ctrl_c_before_anything_is_done(data, capsys, monkeypatch):
    def interrupted(self, task, policy):
        raise KeyboardInterrupt

    monkeypatch.setattr("remask.engine.evaluation.fill.OwnText.fill", interrupted)
    assert infilling(data) == 130
    assert capsys.readouterr().err.endswith("remask: Interrupted.\n")


def write_corpus(folder, sha256):
    tokens = [SUFFIX, *b"\n", PREFIX, *b"def double(x):\n", *SOLUTION.encode(), END]
    roles = [1, 1] + [2] * (1 + len(PROMPT)) + [3] * (len(SOLUTION) + 1)
    arrays = {"tokens": (tokens, np.int32), "roles": (roles, np.uint8), "segments": ([0] * len(tokens), np.uint16)}
    for part, (values, dtype) in arrays.items():
        np.save(folder / f"validation.{part}.npy", np.array([values], dtype))
    splits = {"validation": {"rows": 1}}
    manifest = {"format": 1, "row_tokens": len(tokens), "tokenizer_sha256": sha256, "splits": splits}
    (folder / "corpus.json").write_text(json.dumps(manifest))


def test_tokens(tmp_path, capsys):
    tokenizer = (find_model(None) / "tokenizer.json").read_bytes()
    write_corpus(tmp_path, hashlib.sha256(tokenizer).hexdigest())
    assert run_command(["eval", "tokens", "--data", str(tmp_path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["split"], values["n"], values["canvas"], values["model"]) == ("validation", 1, 4, "tiny")
    assert [block["mask_rate"] for block in values["blocks"]] == [1.0, 0.85, 0.5, 0.15]
    assert run_command(["eval", "tokens", "--data", str(tmp_path)]) == 0
    assert "A verified round gives" in capsys.readouterr().out


def test_a_corpus_of_another_tokenizer_is_refused(tmp_path, capsys):
    write_corpus(tmp_path, "another")
    assert run_command(["eval", "tokens", "--data", str(tmp_path)]) == 2
    assert "another tokenizer" in capsys.readouterr().err
