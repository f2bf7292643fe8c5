"""`remask complete` with the default model: the JSON contract, counters, and the picture."""

import json

import pytest
from rich.console import Console

from remask.cli.main import run_command
from remask.cli.show import show, summary
from remask.contract.messages import Candidate, CompletionRequest, CompletionResult, NameFacts, Reason

SOURCE = "class Box:\n    def __init__(self, width):\n        self.width = width\n\n    def area(self):\n        \n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "box.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.mark.model
def test_json_contract_and_a_warm_second_call(file, capsys):
    outputs = []
    for _ in range(2):
        assert run_command(["complete", file, "--at", "6:9", "--json", "--max-tokens", "8"]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    first, second = outputs
    fields = ["text", "range", "reason", "language", "tokens", "forwards", "prompt", "ms", "model", "policy", "detail"]
    assert list(first) == [*fields, "names", "others"]
    assert first["others"] == []
    assert first["range"] == {"start": {"line": 6, "column": 9}, "end": {"line": 6, "column": 9}}
    assert set(first["ms"]) == {"total", "prompt", "decode"}
    assert (first["language"], first["policy"]) == ("python", "search")
    assert first["prompt"]["cached"] == 0
    assert second["prompt"]["run"] == 0
    assert second["text"] == first["text"]


@pytest.mark.model
def test_several_candidates_are_told_the_best_first(file, capsys):
    arguments = ["complete", file, "--at", "6:9", "--no-cache", "--max-tokens", "8", "--candidates", "3"]
    assert run_command([*arguments, "--json", "--deadline", "60000"]) == 0
    result = json.loads(capsys.readouterr().out)
    texts = [result["text"], *(other["text"] for other in result["others"])]
    assert len(set(texts)) == len(texts) == 3
    assert set(result["others"][0]) == {"text", "reason", "score"}


def test_as_many_candidates_as_nobody_reads_are_refused(file, capsys):
    assert run_command(["complete", file, "--at", "6:9", "--candidates", "6"]) == 2
    assert "1<=x<=5" in capsys.readouterr().err


@pytest.mark.model
def test_typed_text_is_one_completion_a_keystroke(file, capsys):
    arguments = ["complete", file, "--at", "6:9", "--typed", "ret", "--json", "--no-cache", "--max-tokens", "4"]
    assert run_command(arguments) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["range"]["start"]["column"] for r in results] == [9, 10, 11, 12]
    assert results[0]["prompt"]["cached"] == 0
    assert all(r["prompt"]["run"] <= 2 for r in results[1:])


def test_picture_shows_ghost_text_in_its_place():
    console = Console(record=True, width=100, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    request = CompletionRequest(document="a", language="python", prefix="x = 1\ny = ", suffix="\nz = 3\n")
    show(request, CompletionResult(text="x + 1", reason=Reason.LINE, language="python", tokens=3, forwards=2), console)
    text = console.export_text(clear=False)
    assert "    2 │ y = x + 1\n    3 │ z = 3" in text
    assert "3 tokens in 2 passes" in text
    assert "font-weight: bold; font-style: italic" in console.export_html()
    console.file.close()


def test_other_candidates_stand_numbered_below_the_picture():
    console = Console(record=True, width=100)
    request = CompletionRequest(document="a", language="python", prefix="y = ", suffix="\n")
    others = (Candidate("two"), Candidate("three(\n    x)"))
    show(request, CompletionResult(text="one", reason=Reason.LINE, language="python", others=others), console)
    lines = [line.rstrip() for line in console.export_text().split("\n")]
    at = lines.index("    2. two")
    assert lines[at + 1 : at + 3] == ["    3. three(", "           x)"]
    assert lines.index("    1 │ y = one") < at


def test_unknown_names_are_told():
    result = CompletionResult(text="x", reason=Reason.LINE, language="python", names=NameFacts(2, 0.5, 0.5, ("zorp",)))
    assert "Nothing defines zorp." in summary(result)
    assert "Nothing defines" not in summary(CompletionResult(text="x", reason=Reason.LINE, language="python"))


def test_nothing_to_show_says_why():
    console = Console(record=True, width=200)
    request = CompletionRequest(document="a", language="python", prefix="x", suffix="")
    show(request, CompletionResult(text="", reason=Reason.SYNTAX, language="python", detail="Because."), console)
    assert "Nothing to show (syntax). Because." in console.export_text()
