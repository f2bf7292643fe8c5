"""What a search has no memory for: it comes back to the bit, is read again where it is lost, and leaves nothing."""

import pytest
import torch
from tiny import PREFIX, SHAPE, tiny_model

from remask.contract.errors import StorageError
from remask.engine.decode.policies import POLICIES
from remask.engine.decode.regimes import reader_for
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.search import aside
from remask.engine.decode.search.aside import Aside
from remask.engine.decode.search.branches import Branches
from remask.engine.models.paged import PagedCache, PagePool
from remask.engine.prompt import Prompt
from remask.engine.session import Session
from remask.engine.store import DiskStore


@pytest.fixture
def store(tmp_path):
    store = DiskStore("w", tmp_path / "kv")
    yield store
    store.close()


@pytest.fixture(autouse=True)
def _any_length(monkeypatch):
    monkeypatch.setattr(aside, "WORTH_TOKENS", 1)


class Counted:
    """A shelf that counts; `lost` puts nothing back, `damaged` puts back other bytes."""

    def __init__(self, store, lost=False, damaged=False):
        self.store, self.lost, self.damaged = store, lost, damaged
        self.puts = self.gets = 0

    def put(self, name, tensors, lasts_s=None):
        self.puts += 1
        self.store.put(name, tensors, lasts_s)
        if self.damaged:
            key = self.store._key(name)
            self.store._cache.set(key, self.store._cache.get(key)[:-1] + b"?")

    def get(self, name):
        self.gets += 1
        return None if self.lost else self.store.get(name)

    def drop(self, name):
        self.store.drop(name)


class Refusing:
    """A full disk."""

    def put(self, name, tensors, lasts_s=None):
        raise StorageError("The disk is full.")

    get = drop = put


def opened(shelf, length=30, paged=False):
    model, prompt = tiny_model(2), [PREFIX, *[(31 + 7 * i * i) % 256 for i in range(length)]]
    pages = PagedCache(PagePool(SHAPE, dtype=torch.float32, device=torch.device("cpu"), pages=1)) if paged else None
    request = Request(Session(pages or model.transformer.new_cache()), POLICIES["search"], Budget(64), shelf=shelf)
    reader = reader_for(model)
    reader.prepare(request, Prompt(prompt), lambda: False)
    return reader, request, prompt


def entries_of(request, branch, shared):
    return request.session.cache.snapshot(shared)[:, :, :, branch.slots]


def step(held, some, draft=0):
    held.go_on(some, [[number] * draft for number in range(len(some))])


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("forked", [False, True])
@torch.inference_mode()
def test_entries_come_back_to_the_bit_wherever_they_lie_then(store, forked, paged):
    shelf = Counted(store)
    reader, request, prompt = opened(shelf, length=60, paged=paged)  # the branches begin in a page and leave it
    shared = len(prompt) - 1
    with Branches(reader, request, shared, most=24) as held:
        first, second = (held.start([prompt[-1], token]) for token in (5, 9))
        for _ in range(4):
            step(held, [first])
        before, slots = entries_of(request, first, shared), list(first.slots)
        while first.slots:
            step(held, [second], draft=2)  # until there is no room for both
        assert (shelf.puts, shelf.gets, first.kept) == (1, 0, len(slots))
        back = held.fork(first, 2, 70, -1.0) if forked else first
        step(held, [back])
        assert (shelf.puts, shelf.gets) == (1, 1)
        known = 3 if forked else len(slots)
        assert torch.equal(entries_of(request, back, shared)[:, :, :, :known], before[:, :, :, :known])
        assert back.slots[:known] != slots[:known]
    assert not list(store._cache)


@torch.inference_mode()
def test_forks_of_one_text_bring_it_back_once_and_share_it(store):
    shelf = Counted(store)
    reader, request, prompt = opened(shelf)
    with Branches(reader, request, len(prompt) - 1, most=24) as held:
        first, second = (held.start([prompt[-1], token]) for token in (5, 9))
        for _ in range(6):
            step(held, [first])
        while first.slots:
            step(held, [second], draft=2)
        forks = [held.fork(first, place, token, -1.0) for place, token in ((1, 70), (4, 71), (5, 72))]
        step(held, forks)
        assert shelf.gets == 1
        assert forks[0].slots[:2] == forks[1].slots[:2] == forks[2].slots[:2]


@pytest.mark.parametrize("most", [8, 24, 60])
@pytest.mark.parametrize("kind", ["disk", "none", "lost", "damaged", "refusing"])
@torch.inference_mode()
def test_branches_write_the_same_whatever_becomes_of_what_is_put_aside(store, kind, most):
    shelves = {
        "disk": Counted(store),
        "none": None,
        "lost": Counted(store, lost=True),
        "damaged": Counted(store, damaged=True),
        "refusing": Refusing(),
    }
    written, turns = [], [(0, 1, 2), (1,), (0, 2), (1,), (0,), (2,), (0, 1, 2)]
    for shelf, room in ((None, 1024), (shelves[kind], most)):
        reader, request, prompt = opened(shelf)
        with Branches(reader, request, len(prompt) - 1, most=room) as held:
            some = [held.start([prompt[-1], token]) for token in (5, 9, 11)]
            for turn in turns:
                for _ in range(4):
                    step(held, [some[number] for number in turn], draft=1)
            scored = held.scores_of(some, [2, 0, 5])
        written.append(([one.written for one in some], [one.sureness for one in some], scored))
        assert request.session.cache.length == len(request.session.tokens) == len(prompt) - 1
    assert written[0][0] == written[1][0]
    for ours, theirs in zip(written[0][1], written[1][1], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)
    for ours, theirs in zip(written[0][2], written[1][2], strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)
    if kind == "disk" and most < 60:
        assert shelves[kind].gets > 0
    assert not list(store._cache)


@torch.inference_mode()
def test_a_branch_that_nobody_knows_any_more_is_not_put_aside(store):
    shelf = Counted(store)
    reader, request, prompt = opened(shelf)
    with Branches(reader, request, len(prompt) - 1, most=24) as held:
        known, forgotten, live = (held.start([prompt[-1], token]) for token in (5, 9, 11))
        for _ in range(4):
            step(held, [known, forgotten])
        del forgotten
        while known.slots:
            step(held, [live], draft=2)
        assert shelf.puts == 1


def test_an_error_leaves_nothing_on_the_disk(store):
    reader, request, prompt = opened(store)

    @torch.inference_mode()
    def failing():
        with Branches(reader, request, len(prompt) - 1, most=8) as held:
            some = [held.start([prompt[-1], token]) for token in (5, 9)]
            for _ in range(6):
                step(held, some[:1])
            step(held, some[1:], draft=6)
            assert some[0].aside is not None
            assert len(list(store._cache)) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert not list(store._cache)
    assert request.session.cache.length == len(prompt) - 1


def test_short_texts_are_read_again_instead(store, monkeypatch):
    monkeypatch.setattr(aside, "WORTH_TOKENS", 5)
    held = Aside(store)
    assert held.put(torch.zeros(2, 2, 2, 4, 8)) is None
    number = held.put(torch.zeros(2, 2, 2, 5, 8))
    assert held.take(number).shape[3] == 5
    held.clear()
    assert held.take(number) is None


def test_entries_of_another_shape_count_as_lost(store):
    reader, request, prompt = opened(store)
    with torch.inference_mode(), Branches(reader, request, len(prompt) - 1) as held:
        one = held.start([prompt[-1], 5])
        one.aside, one.kept = held._aside.put(torch.zeros(2, 9, 2, 1, 8)), 1
        step(held, [one])
        alone = held.start([prompt[-1], 5])
        step(held, [alone])
        assert one.tokens == alone.tokens


def test_what_another_process_left_goes_when_its_time_is_up(store, monkeypatch):
    monkeypatch.setattr(aside, "LASTS_S", -1.0)
    number = Aside(store).put(torch.zeros(2, 2, 2, 5, 8))
    assert number is not None
    store.put("later", {"kv": torch.zeros(3)})
    assert len(list(store._cache)) == 1
