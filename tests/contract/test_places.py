"""Folders for state: private, never somebody else's, never a link, and short enough for sockets."""

import stat

import pytest

from remask.contract.errors import StorageError
from remask.contract.places import SOCKET_PATH_LIMIT, cache_dir, config_dir, private_dir, runtime_dir


def test_folders_are_made_private(tmp_path):
    folder = private_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert stat.S_IMODE(private_dir(folder).stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("variable", "find"), [("REMASK_CACHE_DIR", cache_dir), ("REMASK_CONFIG_DIR", config_dir)], ids=["cache", "config"]
)
@pytest.mark.parametrize("mode", [0o1777, 0o755, 0o750])
def test_a_named_folder_that_others_use_stays_as_it_is(tmp_path, monkeypatch, variable, find, mode):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv(variable, str(shared))
    assert find() == find() == shared / "remask"
    assert stat.S_IMODE(shared.stat().st_mode) == mode
    assert stat.S_IMODE(find().stat().st_mode) == 0o700


def test_a_named_folder_that_is_new_or_private_is_used_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("REMASK_CACHE_DIR", str(tmp_path / "new"))
    assert cache_dir() == cache_dir() == tmp_path / "new"


def test_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StorageError, match="is a link"):
        private_dir(tmp_path / "link")


def test_a_file_in_the_way_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        private_dir(tmp_path / "file" / "below")


@pytest.mark.parametrize("depth", [1, 30])
def test_socket_folder_is_short_whatever_is_set(tmp_path, monkeypatch, depth):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("REMASK_RUNTIME_DIR", str(tmp_path.joinpath(*["directory"] * depth)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path.joinpath(*["directory"] * depth)))
    assert len(str(runtime_dir())) + 24 <= SOCKET_PATH_LIMIT
