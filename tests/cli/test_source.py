"""Reading a file at a position: every way it goes wrong is one InputError."""

import os
from pathlib import Path

import pytest

from remask.cli.source import Place, Source, read_text
from remask.contract.errors import InputError


@pytest.mark.parametrize(("text", "line", "column"), [("1:1", 1, 1), ("12:5", 12, 5)])
def test_place(text, line, column):
    assert Place.parse(text) == Place(line, column)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "5:",
        ":5",
        "0:1",
        "1:0",
        "00:1",
        "1:00",
        "-1:2",
        "1:2:3",
        "a:b",
        "1.5:2",
        "1: 2",
        "9" * 30 + ":1",
        "\u0661:\u0662x",
    ],
)
def test_not_a_place(text):
    with pytest.raises(InputError, match="LINE:COL"):
        Place.parse(text)


@pytest.mark.parametrize(
    ("content", "place", "prefix", "suffix"),
    [
        (b"ab\ncd\n", Place(1, 1), "", "ab\ncd\n"),
        (b"ab\ncd\n", Place(2, 2), "ab\nc", "d\n"),
        (b"ab\ncd\n", Place(3, 1), "ab\ncd\n", ""),
        (b"ab\r\ncd\r\n", Place(2, 3), "ab\ncd", "\n"),
        (b"\xef\xbb\xbfab", Place(1, 2), "a", "b"),
        ("é😀x".encode(), Place(1, 3), "é😀", "x"),
        (b"", Place(1, 1), "", ""),
        (b"a\x0cb\nc", Place(2, 1), "a\x0cb\n", "c"),
    ],
)
def test_cut(tmp_path, content, place, prefix, suffix):
    path = tmp_path / "a.py"
    path.write_bytes(content)
    source = Source.read(path, place, None)
    assert (source.prefix, source.suffix, source.language) == (prefix, suffix, "python")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a\0b", "binary"),
        (b"a\xffb", "not valid UTF-8 .byte 1"),
        (b"x" * 5_000_000, "5.0 MB"),
    ],
)
def test_unreadable(tmp_path, content, sentence):
    path = tmp_path / "a.py"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_text(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_text(tmp_path / "a.py")
    with pytest.raises(InputError, match="folder"):
        read_text(tmp_path)
    with pytest.raises(InputError):
        read_text(Path("x" * 5000))


def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(InputError, match="not a regular file"):
        read_text(tmp_path / "pipe.py")


@pytest.mark.parametrize(("place", "sentence"), [(Place(4, 1), "no line 4"), (Place(1, 4), "no column 4")])
def test_outside(tmp_path, place, sentence):
    path = tmp_path / "a.py"
    path.write_text("ab\ncd\n")
    with pytest.raises(InputError, match=sentence):
        Source.read(path, place, None)


@pytest.mark.parametrize("name", [".env", "server.key", "id_rsa", ".ssh/config"])
def test_files_that_may_hold_secrets_are_never_read(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("TOKEN=1\n")
    with pytest.raises(InputError, match="secrets"):
        Source.read(path, Place(1, 1), "python")


def test_unknown_language(tmp_path):
    path = tmp_path / "a.xyz"
    path.write_text("ab")
    with pytest.raises(InputError, match="language"):
        Source.read(path, Place(1, 1), None)
    with pytest.raises(InputError, match="klingon"):
        Source.read(path, Place(1, 1), "klingon")
    assert Source.read(path, Place(1, 1), "python").language == "python"
