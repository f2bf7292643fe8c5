"""Results of a measurement that goes on where it was ended."""

import pytest

from remask.contract.errors import InputError, StorageError
from remask.engine.evaluation.kept import Kept

HOW = {"seed": 1, "block": 32}


def test_what_is_kept_is_there_for_the_next_run(tmp_path):
    path = tmp_path / "kept.jsonl"
    kept = Kept(path, HOW)
    assert kept.get("a") is None
    kept.add("a", {"lost": 2, "by": ["parser"]})
    again = Kept(path, HOW)
    assert again.get("a") == {"lost": 2, "by": ["parser"]}
    again.add("b", {"lost": 0})
    assert Kept(path, HOW).get("b") == {"lost": 0}


def test_a_line_that_was_cut_off_is_done_again(tmp_path):
    path = tmp_path / "kept.jsonl"
    kept = Kept(path, HOW)
    kept.add("a", {"lost": 2})
    kept.add("b", {"lost": 3})
    path.write_bytes(path.read_bytes()[:-5])
    kept = Kept(path, HOW)
    assert list(tmp_path.iterdir()) == [path]
    assert kept.get("a") == {"lost": 2}
    assert kept.get("b") is None
    kept.add("b", {"lost": 4})
    assert Kept(path, HOW).get("b") == {"lost": 4}


@pytest.mark.parametrize(
    "content",
    ['{"seed": 2, "block": 32}\n', "hello", '{"block": 32, "seed": 1}\n[1]\n', '{"block": 32, "seed": 1}\n{\n'],
)
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "other"
    path.write_text(content)
    with pytest.raises(InputError):
        Kept(path, HOW)
    assert path.read_text() == content


def test_a_disk_that_refuses_costs_nothing_that_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "kept.jsonl"
    kept = Kept(path, HOW)
    kept.add("a", {"lost": 2})
    path.write_bytes(path.read_bytes() + b"{")
    before = path.read_bytes()

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(StorageError, match="No space left"):
        Kept(path, HOW)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(StorageError):
        Kept(tmp_path / "no" / "kept.jsonl", HOW)
