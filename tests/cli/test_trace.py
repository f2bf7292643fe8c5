"""`remask trace`: what it draws, on any terminal, and what it says of files that are no traces."""

import io
import json
import stat

import pytest
from rich.cells import cell_len
from rich.console import Console

from remask.cli.main import run_command
from remask.cli.trace import read, write
from remask.cli.trace_picture import draw
from remask.contract.errors import InputError, StorageError
from remask.engine.decode.trace import Denoised, Judged, Prompted, Record, Remasked, Verified

EVENTS = [
    Prompted(attempt=0, ms=12.0, total=9, cached=3, run=5, passes=1),
    Denoised(
        attempt=0,
        ms=3.0,
        at=0,
        ids=[1, 2, 3],
        texts=["return", " zorp", "\n\t"],
        confidence=[0.93, 0.41, 0.66],
        open=[False, False, True],
        committed=[1],
    ),
    Remasked(attempt=0, ms=0.1, at=0, positions=[1], ids=[2], texts=[" zorp"], judge="names", reason="nobody knows it"),
    Verified(
        attempt=0,
        ms=2.0,
        at=2,
        source="lookup",
        ids=[4, 5],
        texts=[" x", "}"],
        accepted=1,
        own=6,
        own_text="",
        confidence=[0.9, 0.31],
    ),
    Judged(
        attempt=1, ms=1.0, judge="parser", draft="return x", kept="return x", reason="end", detail="The draft holds."
    ),
]


def record(events=EVENTS, text="return x", **values):
    known = {"document": "a.py", "language": "python", "model": "tiny", "policy": "parallel", "suffix": ""}
    known |= {"reason": "end", "tokens": 3, "forwards": 3, "ms": 20.0, "prefix": "def f():\n    "}
    return Record(events=list(events), text=text, **known | values)


def drawn(one, width=80, encoding="utf-8", colour=None):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    console = Console(file=stream, width=width, color_system=colour, force_terminal=colour is not None, highlight=False)
    draw(one, console)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def test_each_pass_is_a_row_of_cells_with_its_signs():
    lines = drawn(record()).split("\n")
    row = next(i for i, line in enumerate(lines) if "1 of 3 committed" in line)
    assert lines[row + 1].split() == ["return", "·zorp", "░⏎→"]
    assert lines[row + 2].split() == ["9", "+4", "?6"]
    assert lines[row + 1].index("·zorp") == lines[row + 2].index("+4")


def test_what_was_taken_back_is_marked_with_its_reason():
    text = drawn(record())
    assert "names: nobody knows it" in text
    assert "~·zorp~" in text
    assert "~}~" in text


def test_with_colours_it_is_struck_out():
    text = drawn(record(), colour="standard")
    assert "\x1b[9;31m·zorp\x1b[0m" in text
    assert "~·zorp~" not in text


def test_a_further_candidate_and_the_end_are_told():
    text = drawn(record())
    assert "Another candidate, drawn with seed 1" in text
    assert "all kept, end. The draft holds." in text
    assert "3 tokens in 3 passes, 20 ms; ended by: end." in text


@pytest.mark.parametrize("width", [1, 20, 33, 200])
def test_no_line_is_wider_than_the_terminal(width):
    events = [EVENTS[1]] * 3
    text = drawn(record(events, document="file:///" + "very/" * 40 + "long.py", text="y" * 300), width=max(20, width))
    assert max(cell_len(line) for line in text.split("\n")) <= max(20, width)
    for word in ("return", "·zorp"):
        assert text.count(word) == 3


def test_an_ascii_terminal_gets_ascii():
    drawn(record(), encoding="ascii").encode("ascii")


def test_nothing_in_a_trace_commands_the_terminal():
    evil = "\x1b[31m\x9b\a\r\x00‮"
    event = Denoised(
        attempt=0, ms=1.0, at=0, ids=[1], texts=[evil], confidence=[0.5], open=[False], committed=[]
    )  # fmt: skip
    gone = Remasked(attempt=0, ms=1.0, at=0, positions=[0], ids=[1], texts=[evil], judge=evil, reason=evil)
    text = drawn(record([event, gone], document=evil, model=evil, prefix=evil, text=evil))
    assert not set(text) & set(evil) - set("[31m")


def test_a_request_that_did_nothing_is_drawn_too():
    assert "ended by: language" in drawn(record([], text="", reason="language"))


def test_the_file_is_for_its_owner_only_and_comes_back(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("old")
    path.chmod(0o644)
    write(path, [record(), record([])])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read(path) == [record(), record([])]
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dump", full)
    with pytest.raises(StorageError):
        write(tmp_path / "out.json", [record()])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"{", b"[]", b'{"format": "remask-trace", "version": 1}', b"[" * 100_000]
)
def test_foreign_and_damaged_files_are_one_sentence(content, tmp_path, capsys):
    path = tmp_path / "t.json"
    path.write_bytes(content)
    assert run_command(["trace", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert str(path) in said.err


def test_a_missing_file_and_a_folder(tmp_path, capsys):
    for path in (tmp_path / "none.json", tmp_path):
        assert run_command(["trace", str(path)]) == 2
        assert "There is no file" in capsys.readouterr().err


def test_from_the_command_line(tmp_path, capsys):
    write(tmp_path / "t.json", [record()])
    assert run_command(["trace", str(tmp_path / "t.json"), "--width", "60"]) == 0
    assert "parallel" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["/dev/null", "/nowhere/t.json"])
def test_complete_refuses_at_once_what_it_could_not_write(path, tmp_path, capsys):
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    assert run_command(["complete", str(source), "--at", "1:1", "--trace", path]) == 2
    assert "trace" in capsys.readouterr().err


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("remask.cli.trace.MAX_BYTES", 10)
    path = tmp_path / "t.json"
    write(path, [record()])
    with pytest.raises(InputError):
        read(path)
