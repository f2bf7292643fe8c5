"""Reading published tasks, and drawing some of them."""

import gzip
import json

import pytest

from remask.contract.errors import InputError, StorageError
from remask.engine.evaluation.tasks import (
    SPLITS,
    choose,
    read_tasks,
    rest_of_line,
    split_named,
    whole_line,
    write_lines,
)

LINE = SPLITS["single-line"]


def entry(number, **changes):
    return {
        "task_id": f"T/{number}",
        "entry_point": "f",
        "prompt": "def f(x):\n",
        "suffix": "",
        "canonical_solution": "    return x\n",
        "test": "def check(candidate):\n    assert candidate(1) == 1\n",
    } | changes


def write(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(lines).encode()) if path.suffix == ".gz" else "\n".join(lines).encode())


@pytest.mark.parametrize("place", ["{}", "{}.gz", "human-eval-infilling/{}", "human-eval-infilling/{}.gz"])
def test_both_places_and_both_forms(tmp_path, place):
    write(tmp_path / place.format(LINE.file), [json.dumps(entry(i)) for i in range(3)])
    tasks = read_tasks(tmp_path, LINE)
    assert [t.name for t in tasks] == ["T/0", "T/1", "T/2"]
    assert tasks[0].prefix + tasks[0].truth + tasks[0].suffix == "def f(x):\n    return x\n"
    assert tasks[0].test.endswith("\ncheck(f)\n")


@pytest.mark.parametrize("line", ["{", "[]", "7", "{}", json.dumps(entry(1, test=None)), json.dumps({"task_id": "x"})])
def test_a_damaged_line_is_named(tmp_path, line):
    write(tmp_path / LINE.file, [json.dumps(entry(0)), line])
    with pytest.raises(InputError, match=r"Line 2 of .*is no task"):
        read_tasks(tmp_path, LINE)


def test_a_damaged_archive_is_one_sentence(tmp_path):
    whole = gzip.compress(json.dumps(entry(0)).encode() * 50)
    (tmp_path / f"{LINE.file}.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        read_tasks(tmp_path, LINE)
    (tmp_path / f"{LINE.file}.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match="cannot be read"):
        read_tasks(tmp_path, LINE)


def test_text_in_another_encoding_is_one_sentence(tmp_path):
    (tmp_path / LINE.file).write_bytes(b'{"task_id": "\xff"}')
    with pytest.raises(InputError, match="cannot be read"):
        read_tasks(tmp_path, LINE)


def test_missing_things_are_named(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        read_tasks(tmp_path / "nowhere", LINE)
    with pytest.raises(InputError, match=r"There is no HumanEval-SingleLineInfilling\.jsonl"):
        read_tasks(tmp_path, LINE)
    write(tmp_path / LINE.file, ["", " "])
    with pytest.raises(InputError, match="holds no tasks"):
        read_tasks(tmp_path, LINE)
    with pytest.raises(InputError, match=r"no split 'lines'; there are single-line, .*cross-file"):
        split_named("lines")


def test_a_larger_sample_holds_the_smaller_one(tmp_path):
    write(tmp_path / LINE.file, [json.dumps(entry(i)) for i in range(40)])
    tasks = read_tasks(tmp_path, LINE)
    few, more = choose(tasks, 5, seed=0), choose(tasks, 20, seed=0)
    assert few == more[:5] == choose(reversed(tasks), 5, seed=0)
    assert few != choose(tasks, 5, seed=1)
    assert sorted(t.name for t in choose(tasks, None, seed=3)) == sorted(t.name for t in tasks)


def test_where_middles_end():
    assert whole_line("    return x\n    y") == len("    return x\n")
    assert whole_line("\n  x\ny") == len("\n  x\n")
    assert whole_line("\n  ") is None
    assert rest_of_line("(a)\nb") == 3
    assert rest_of_line("\n") == 0
    assert rest_of_line("(a)") is None


def test_lines_are_written_whole_or_not_at_all(tmp_path):
    write_lines(tmp_path / "out.jsonl", [{"a": 1}, {"a": "ä\n"}])
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [{"a": 1}, {"a": "ä\n"}]
    with pytest.raises(StorageError, match="cannot be written"):
        write_lines(tmp_path / "no" / "out.jsonl", [{"a": 1}])
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        write_lines(tmp_path / "taken", [{"a": 1}])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.jsonl", "taken"]
