"""The tiers of sessions: what leaves one comes back from the next, bit for bit, and a refusing disk costs no more."""

import pytest
import torch
from tiny import tiny_model

from remask.contract.errors import ModelError, StorageError
from remask.contract.messages import CompletionRequest
from remask.engine.api import Engine
from remask.engine.models.passes import Pass
from remask.engine.store import DiskStore
from remask.engine.tiers import Tiers

TRANSFORMER = tiny_model().transformer
TOKENS = {name: [(seed * 31 + 7 * i * i) % 256 for i in range(40)] for seed, name in enumerate("abcd")}
ONE = TRANSFORMER.new_cache().nbytes
HOST_ONE = 40 * (2 * 2 * 2 * 8 * 4 + 8)  # bytes of 40 entries and their tokens


@pytest.fixture
def store(tmp_path):
    store = DiskStore("w", tmp_path / "kv")
    yield store
    store.close()


def read(tiers, name):
    session = tiers.open(name)
    kept = session.cut_to(TOKENS[name])
    forward = TRANSFORMER.forward
    session.extend(
        TOKENS[name][kept:], lambda chunk, at: forward(Pass.causal(chunk, at, torch.device("cpu")), session.cache)
    )
    tiers.trim()
    return session


def held(tiers, store):
    """Documents on each tier below the device."""
    return list(tiers._host), [name for name in TOKENS if store.get(name) is not None]


@pytest.mark.parametrize("host", [0, 10 * HOST_ONE])
def test_what_left_the_device_comes_back_to_the_bit(store, host):
    tiers = Tiers(TRANSFORMER, store, budget=ONE, host_budget=host)
    before = read(tiers, "a").cache.snapshot()
    read(tiers, "b")
    assert len(tiers) == 1
    assert held(tiers, store) == ((["a"], []) if host else ([], ["a"]))
    back = tiers.open("a")
    assert back.tokens == TOKENS["a"]
    assert torch.equal(back.cache.snapshot(), before)
    assert not tiers._host


def test_the_least_recently_used_goes_down_first_tier_by_tier(store):
    tiers = Tiers(TRANSFORMER, store, budget=ONE, host_budget=2 * HOST_ONE)
    for name in "abc":
        read(tiers, name)
    assert held(tiers, store) == (["a", "b"], [])
    assert tiers.host_bytes == 2 * HOST_ONE
    read(tiers, "a")  # back on the device, and "c" goes
    assert held(tiers, store) == (["b", "c"], [])
    read(tiers, "d")
    assert held(tiers, store) == (["c", "a"], ["b"])
    assert all(tiers.open(name).tokens == TOKENS[name] for name in TOKENS)


def test_on_a_processor_there_is_no_tier_between_memory_and_disk(store):
    tiers = Tiers(TRANSFORMER, store, budget=ONE)
    for name in "ab":
        read(tiers, name)
    assert held(tiers, store) == ([], ["a"])


def test_without_a_disk_what_left_is_read_again():
    tiers = Tiers(TRANSFORMER, budget=ONE)
    for name in "ab":
        read(tiers, name)
    assert tiers.open("a").tokens == []
    assert tiers.warning is None


def test_a_disk_that_refuses_costs_what_it_would_hold(store, monkeypatch):
    tiers = Tiers(TRANSFORMER, store, budget=ONE)

    def refuse(*_args, **_values):
        raise StorageError("The disk is full.")

    read(tiers, "a")
    for name in ("put", "get"):
        monkeypatch.setattr(store, name, refuse)
    read(tiers, "b")
    assert "full" in str(tiers.warning)
    assert tiers.open("a").tokens == []
    tiers.save_all()


def test_where_no_memory_is_left_for_a_copy_a_session_is_read_again(store, monkeypatch):
    tiers = Tiers(TRANSFORMER, store, budget=ONE, host_budget=9 * HOST_ONE)

    def short(*_args):
        raise torch.OutOfMemoryError("Tried to allocate 2 GiB")

    monkeypatch.setattr(read(tiers, "a").cache, "snapshot", short)
    monkeypatch.setattr(read(tiers, "b").cache, "snapshot", short)
    tiers.save_all()
    assert held(tiers, store) == ([], [])
    assert tiers.open("a").tokens == []
    assert tiers.open("b").tokens == TOKENS["b"]


def test_where_memory_is_short_for_what_comes_back_the_host_keeps_it(store, monkeypatch):
    tiers = Tiers(TRANSFORMER, store, budget=ONE, host_budget=10 * HOST_ONE)
    for name in "ab":
        read(tiers, name)
    assert held(tiers, store)[0] == ["a"]

    def short(session, tensors):
        raise ModelError("The device has no memory left.")

    with monkeypatch.context() as patch:
        patch.setattr("remask.engine.tiers.filled", short)
        with pytest.raises(ModelError):
            tiers.open("a")
    assert "a" in held(tiers, store)[0]
    assert tiers.open("a").tokens == TOKENS["a"]


def test_all_tiers_are_saved_and_a_forgotten_document_is_on_disk_alone(store):
    tiers = Tiers(TRANSFORMER, store, budget=ONE, host_budget=9 * HOST_ONE)
    for name in "abc":
        read(tiers, name)
    tiers.forget("a")
    tiers.save_all()
    assert held(tiers, store) == ([], ["b", "c"])
    tiers.forget("c")
    assert tiers.open("c").tokens == TOKENS["c"]
    assert tiers.open("a").tokens == []


def test_a_session_leaves_when_it_is_told_to_and_an_empty_one_takes_no_room(store):
    tiers = Tiers(TRANSFORMER, store, host_budget=9 * HOST_ONE)
    read(tiers, "a")
    tiers.open("b")
    for name in "abx":
        tiers.leave(name)
    assert (len(tiers), held(tiers, store)) == (0, (["a"], []))


@pytest.mark.parametrize("policy", ["default", "parallel", "search:branches=3"])
def test_files_typed_in_turn_through_all_tiers_are_as_if_each_were_alone(store, policy):
    model, typed = tiny_model(), {"a.py": "x = 1\ny = ", "b.py": "import os\nz = os.", "c.py": "def f(a):\n    "}
    shared, alone = Engine(model, store), {name: Engine(model) for name in typed}
    shared._documents = Tiers(model.transformer, store, budget=ONE, host_budget=600)
    for keys in (1, 6, 3, 9):  # some of it is deleted in between
        for name, text in typed.items():
            asked = CompletionRequest(
                document=name,
                language="python",
                prefix=text[:keys],
                suffix="\n",
                policy=policy,
                max_tokens=6,
                deadline_ms=600_000,
            )
            ours, theirs = (engine.complete(asked) for engine in (shared, alone[name]))
            assert (ours.text, ours.reason) == (theirs.text, theirs.reason)
            assert ours.prompt.cached == theirs.prompt.cached
    assert len(shared._documents) == 1


def test_entries_of_another_model_are_read_again(store):
    tiers = Tiers(TRANSFORMER, store, host_budget=9 * HOST_ONE)
    read(tiers, "a")
    tiers.leave("a")
    tiers._host["a"]["kv"] = tiers._host["a"]["kv"].to(torch.bfloat16)
    assert tiers.open("a").tokens == []
