"""Which source files a measurement reads."""

import json

import pytest

from remask.contract.errors import InputError
from remask.engine.evaluation.heldout import make_tasks
from remask.engine.evaluation.sources import read_documents
from remask.engine.evaluation.tasks import SPLITS, made_split

PYTHON = "def area(side):\n    height = side\n    return side * height\n" * 4
GO = "package shapes\n\nfunc area(side int) int {\n\theight := side\n\treturn side * height\n}\n" * 3


@pytest.fixture
def folder(tmp_path):
    files = {
        "a.py": PYTHON,
        "deep/b.py": PYTHON,
        "deep/c.go": GO,
        ".hidden/d.py": PYTHON,
        "short.py": "x = 1\n",
        "minified.js": "a=1;" * 200,
        "windows.py": PYTHON.replace("\n", "\r\n"),
        "notes.txt": PYTHON,
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    (tmp_path / "bytes.py").write_bytes(b"\xff" * 300)
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    return tmp_path


def paths(documents, folder):
    return sorted(document.path.removeprefix(f"{folder.name}/") for document in documents)


def test_files_that_people_write_in_any_language_with_a_grammar(folder):
    assert paths(read_documents(folder), folder) == ["a.py", "deep/b.py", "deep/c.go"]
    assert paths(read_documents(folder, ["go"]), folder) == ["deep/c.go"]


def test_a_few_files_are_drawn_by_the_seed_alone(folder, monkeypatch):
    monkeypatch.setattr("remask.engine.evaluation.sources.FILES", 1)
    drawn = [paths(read_documents(folder, ["python"], seed), folder) for seed in range(8)]
    assert drawn == [paths(read_documents(folder, ["python"], seed), folder) for seed in range(8)]
    assert {tuple(one) for one in drawn} == {("a.py",), ("deep/b.py",)}


def test_a_corpus_gives_its_held_out_files(folder):
    line = json.dumps({"package": "p", "path": "p/x.go", "text": GO})
    (folder / "validation.jsonl").write_text(line + "\n")
    assert [d.path for d in read_documents(folder)] == ["p/x.go"]
    assert read_documents(folder, ["python"]) == []


def test_what_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="no source file in go"):
        read_documents(tmp_path, ["go"])
    with pytest.raises(InputError, match="no language 'klingon'; there are c, cpp"):
        read_documents(tmp_path, ["klingon"])
    with pytest.raises(InputError, match="no folder"):
        read_documents(tmp_path / "nowhere")
    with pytest.raises(InputError, match="'single-line' that is made from files; there are line-end"):
        made_split("single-line")


def test_languages_take_turns(folder):
    made = make_tasks(folder, SPLITS["line-end"], 6, 0)
    assert [task.language for task in made] == ["go", "python"] * 3
    assert made[:2] == make_tasks(folder, SPLITS["line-end"], 2, 0)
