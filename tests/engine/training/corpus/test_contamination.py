"""No long line of an evaluation set may stand in a kept file: a planted one is found wherever it stands."""

import gzip
import json

import pytest

from remask.contract.errors import InputError
from remask.engine.training.corpus.contamination import EvaluationLines, read_evaluation_lines

LONG = "result = [x for x in numbers if x % 2 == 0 and x > threshold]"
PUNCTUATION = "=" * 50


@pytest.fixture
def folder(tmp_path):
    task = {"prompt": f"def f():\n    {LONG}\n    short = 1\n", "task_id": "a/1", "test": f"x\n{PUNCTUATION}\n"}
    inside = tmp_path / "sets" / "infilling"
    inside.mkdir(parents=True)
    (inside / "Tasks.jsonl.gz").write_bytes(gzip.compress((json.dumps(task) + "\n").encode()))
    bug = [{"slug": "s", "examples": ["if distance_between(first, second) < threshold_value_here:"], "level": 3}]
    (inside / "bugs.json").write_text(json.dumps(bug))
    return tmp_path / "sets"


def test_long_lines_of_all_shapes_are_read(folder):
    found = read_evaluation_lines([folder])
    assert found.lines == sorted([LONG, PUNCTUATION, "if distance_between(first, second) < threshold_value_here:"])


@pytest.mark.parametrize(
    "planted",
    [LONG, f"        {LONG}  ", f"# {LONG}", f"my_{LONG} + 1", f"x = '''{LONG}'''", PUNCTUATION, f"#{PUNCTUATION}="],
)
def test_a_planted_line_is_found(folder, planted):
    found = read_evaluation_lines([folder])
    text = f"def g(a):\n    return a\n\n\n{planted}\n\n\ndef h():\n    pass\n"
    assert found.hit(text) in (LONG, PUNCTUATION)


@pytest.mark.parametrize("clean", ["    short = 1\n", LONG[:44], LONG.replace("threshold", "bound"), "=" * 44, ""])
def test_other_text_is_kept(folder, clean):
    assert read_evaluation_lines([folder]).hit(f"def g():\n{clean}\n") is None


def test_every_line_is_found_in_its_own_text():
    lines = [f"value_{i} = function_{i % 7}(argument_{i % 11}, {i}) + other_{i}[{i}]" for i in range(300)]
    found = EvaluationLines(lines)
    assert [found.hit(f"a\n{line}\nb") for line in lines] == lines


def test_nothing_is_found_without_evaluation_sets():
    assert read_evaluation_lines([]).hit(LONG) is None


@pytest.mark.parametrize(("name", "data"), [("a.json", b"{"), ("a.jsonl.gz", b"no gzip"), ("a.jsonl", b"\xff")])
def test_damaged_data_is_refused(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match="cannot be read"):
        read_evaluation_lines([tmp_path])


def test_folders_without_data_are_refused(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        read_evaluation_lines([tmp_path / "none"])
    with pytest.raises(InputError, match="no evaluation data"):
        read_evaluation_lines([tmp_path])
