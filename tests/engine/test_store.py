"""The disk tier: what was kept comes back, and nothing unsound ever does."""

import os
import stat

import pytest
import torch
from tiny import SHAPE, tiny_model

from remask.contract.errors import ModelError, StorageError
from remask.engine.models.kv import KVCache
from remask.engine.models.paged import PagedCache, PagePool
from remask.engine.models.passes import Pass
from remask.engine.session import Session
from remask.engine.store import DiskStore, RawBytes


def read(session, tokens, transformer):
    session.extend(
        tokens, lambda chunk, at: transformer.forward(Pass.causal(chunk, at, transformer.device), session.cache)
    )


@pytest.fixture
def transformer():
    return tiny_model().transformer


@pytest.fixture
def warm(transformer):
    session = Session(transformer.new_cache())
    read(session, [1, 2, 3, 4], transformer)
    return session


@pytest.fixture
def store(tmp_path):
    store = DiskStore("weights-a", tmp_path / "kv")
    yield store
    store.close()


def fresh(transformer):
    return Session(transformer.new_cache())


def test_what_was_kept_comes_back(store, warm, transformer):
    store.save("file:///a.py", warm)
    session = fresh(transformer)
    assert store.restore("file:///a.py", session)
    assert session.tokens == warm.tokens
    assert torch.equal(session.cache.snapshot(), warm.cache.snapshot())
    assert session.cut_to([1, 2, 3, 4, 5]) == 4


def test_a_session_that_finds_no_memory_for_what_was_kept_is_usable(store, warm, transformer, monkeypatch):
    """It may hold what another one has read: sequences in one pool share their beginnings."""
    store.save("file:///a.py", warm)
    session = Session(PagedCache(PagePool(SHAPE, dtype=torch.float32, device=torch.device("cpu"), pages=2)))
    read(session, [1, 2, 9], transformer)

    def refuse(_tokens):
        raise ModelError("Reading 4 tokens needs more than there is.")

    with monkeypatch.context() as short:
        short.setattr(session.cache, "reserve", refuse)
        with pytest.raises(ModelError):
            store.restore("file:///a.py", session)
    assert session.cache.length == len(session.tokens) == 0
    read(session, [1, 2, 3, 4][session.cut_to([1, 2, 3, 4]) :], transformer)
    torch.testing.assert_close(session.cache.snapshot(), warm.cache.snapshot())


def test_other_document_and_other_weights_are_absent(store, warm, transformer, tmp_path):
    store.save("file:///a.py", warm)
    other = DiskStore("weights-b", tmp_path / "kv")
    assert not store.restore("file:///b.py", fresh(transformer))
    assert not other.restore("file:///a.py", fresh(transformer))
    other.close()


@pytest.mark.parametrize("damage", [lambda e: e[:40], lambda e: e[:-1] + bytes([e[-1] ^ 1]), lambda e: b"x" * len(e)])
def test_damaged_entry_is_dropped_and_nothing_is_changed(store, warm, transformer, damage):
    store.save("a", warm)
    key = store._key("a")
    store._cache.set(key, damage(store._cache.get(key)))
    session = fresh(transformer)
    assert not store.restore("a", session)
    assert session.tokens == []
    assert session.cache.length == 0
    assert store._cache.get(key) is None


def test_an_entry_that_is_not_bytes_is_dropped(store, transformer):
    with store._cache.transact():
        store._cache._sql(
            "INSERT INTO Cache (key, raw, store_time, mode, value, size) VALUES (?, 1, 0, 1, 'hello', 5)",
            (store._key("a"),),
        )
    assert not store.restore("a", fresh(transformer))


def test_entries_of_another_precision_are_dropped(store, warm, transformer):
    store.save("a", warm)
    narrow = Session(KVCache(transformer.shape, dtype=torch.bfloat16, device=transformer.device))
    assert not store.restore("a", narrow)
    assert narrow.tokens == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_folder_and_files_are_private(store, tmp_path):
    store.put("a", {"kv": torch.zeros(100_000)})  # large enough for a file of its own
    folder = tmp_path / "kv"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len([file for file in files if file.suffix == ".val"]) == 1
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_the_least_recently_used_goes_first_where_the_budget_is_full(tmp_path):
    block = {"kv": torch.rand(250_000)}  # 1 MB
    store = DiskStore("w", tmp_path / "kv", budget_bytes=4_500_000)
    for name in "abcd":
        store.put(name, block)
    assert store.get("a") is not None  # used once more, so "b" is the oldest now
    for name in "efg":
        store.put(name, block)
    left = [name for name in "abcdefg" if store.get(name) is not None]
    store.close()
    assert left == ["a", "e", "f", "g"]


def test_what_was_kept_for_a_time_is_absent_afterwards(store):
    store.put("a", {"kv": torch.ones(3)}, lasts_s=-1.0)
    store.put("b", {"kv": torch.ones(3)}, lasts_s=600.0)
    assert store.get("a") is None
    assert torch.equal(store.get("b")["kv"], torch.ones(3))
    store.drop("b")
    store.drop("b")
    assert store.get("b") is None


def test_pickles_are_neither_written_nor_opened(store, tmp_path):
    with pytest.raises(TypeError):
        store._cache.set("k", {"not": "bytes"})
    assert RawBytes(str(tmp_path)).fetch(4, None, b"cos\nsystem\n(S'false'\ntR.", False) == b""


def test_full_disk_is_one_sentence(store, warm, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store._cache, "set", refuse)
    with pytest.raises(StorageError, match="No space left"):
        store.save("a", warm)


def test_nothing_half_written_is_left_on_a_full_disk(store, tmp_path, monkeypatch):
    class Full:
        def __init__(self, *_args, **_kwargs):
            self.file = open(*_args, **_kwargs)  # noqa: SIM115 - closed below

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, chunk):
            self.file.write(chunk[: len(chunk) // 2])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("diskcache.core.open", Full, raising=False)
    with pytest.raises(StorageError, match="No space left"):
        store.put("a", {"kv": torch.zeros(100_000)})
    assert not list((tmp_path / "kv").rglob("*.val"))


def test_a_file_in_the_folders_place_is_one_sentence(tmp_path):
    (tmp_path / "kv").write_text("in the way")
    with pytest.raises(StorageError):
        DiskStore("weights-a", tmp_path / "kv")
