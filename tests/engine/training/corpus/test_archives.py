"""Wheels are read in memory and within bounds, whatever they hold."""

import struct
import zipfile

import pytest

from remask.contract.errors import InputError
from remask.engine.training.corpus import archives
from remask.engine.training.corpus.archives import read_wheel


def wheel(tmp_path, files):
    path = tmp_path / "a-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_source_files_in_the_order_of_their_paths(tmp_path):
    path = wheel(tmp_path, {"b.py": b"b", "a/x.py": b"x", "a/x.so": b"\0", "setup.cfg": b""})
    assert list(read_wheel(path)) == [("a/x.py", b"x"), ("b.py", b"b")]


def test_large_files_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 10)
    path = wheel(tmp_path, {"a.py": b"x" * 11, "b.py": b"x" * 10})
    assert [name for name, _ in read_wheel(path)] == ["b.py"]


@pytest.mark.parametrize("name", ["../a.py", "/a.py", "a/../../b.py", "C:/a.py", "..\\a.py"])
def test_unsafe_paths_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="unsafe path"):
        list(read_wheel(wheel(tmp_path, {name: b"x"})))


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 1_000)
    path = wheel(tmp_path, {f"{i}.py": b"x" * 600 for i in range(3)})
    with pytest.raises(InputError, match="unpacks to more"):
        list(read_wheel(path))


def test_a_file_larger_than_it_says_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 100)
    path = wheel(tmp_path, {"a.py": b"x" * 5_000})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 50)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_wheel(path))


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    with pytest.raises(InputError, match="too many files"):
        list(read_wheel(wheel(tmp_path, {f"{i}.py": b"" for i in range(3)})))


@pytest.mark.parametrize("data", [b"", b"not a zip archive", b"PK\x03\x04 half"])
def test_what_is_no_archive_is_refused(tmp_path, data):
    path = tmp_path / "a.whl"
    path.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read"):
        list(read_wheel(path))
