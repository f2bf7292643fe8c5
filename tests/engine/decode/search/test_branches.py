"""Branches over one cache: each as if it were alone, with the memory of one."""

import weakref

import pytest
import torch
from reference import reference_greedy
from tiny import END, MASK, PREFIX, SHAPE, SUFFIX, random_weights, tiny_model

from remask.engine.decode.policies import POLICIES
from remask.engine.decode.regimes import reader_for
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.search.branches import Branches
from remask.engine.models import kv
from remask.engine.models.paged import PAGE, PagedCache, PagePool
from remask.engine.prompt import Prompt
from remask.engine.session import Session

NEVER = [MASK, PREFIX, SUFFIX]


def opened(model, prompt):
    reader = reader_for(model)
    request = Request(Session(model.transformer.new_cache()), POLICIES["search"], Budget(64))
    reader.prepare(request, Prompt(prompt), lambda: False)
    return reader, request


def prompt_of(length, seed=1):
    return [PREFIX, *[(seed * 31 + 7 * i * i) % 256 for i in range(length)]]


@pytest.mark.parametrize("most", [16, 1024], ids=["entries dropped again and again", "entries kept"])
@pytest.mark.parametrize("draft", [0, 3])
@torch.inference_mode()
def test_branches_write_what_one_token_a_pass_writes(draft, most):
    """Whatever their drafts hold, and although some fork from others, and the room for their entries is small."""
    model, prompt = tiny_model(2), prompt_of(30)
    reader, request = opened(model, prompt)
    with Branches(reader, request, len(prompt) - 1, most) as branches:
        first = branches.start(prompt[-1:])
        for _ in range(8):
            branches.go_on([first], [[]])
        forks = [branches.fork(first, place, token, -1.0) for place, token in ((0, 7), (3, 9), (3, 11), (6, 70))]
        starts = [len(one.written) for one in forks]
        for number in range(9):
            drafts = [[(number * 5 + i) % 256 for i in range(draft)] for _ in forks]
            branches.go_on(forks, drafts)
        for one, start in zip(forks, starts, strict=True):
            before = [*prompt, *one.written[:start]]
            want = reference_greedy(random_weights(seed=2), SHAPE, before, len(one.written) - start, END, NEVER)
            got = one.written[start:]
            got = got[: got.index(END)] if END in got else got
            assert got == want[: len(got)]
            assert len(want) >= len(got)
    assert request.session.cache.length == len(prompt) - 1


@torch.inference_mode()
def test_the_session_keeps_what_lies_right_behind_it():
    model, prompt = tiny_model(2), prompt_of(30)
    reader, request = opened(model, prompt)
    with Branches(reader, request, len(prompt) - 1) as branches:
        first = branches.start(prompt[-1:])
        for _ in range(6):
            branches.go_on([first], [[]])
        fork = branches.fork(first, 2, 9, -1.0)
        branches.go_on([fork], [[]])
        branches.leave_to_session(fork)
    session = request.session
    assert session.tokens == [*prompt, *fork.written[:2]]
    assert session.cache.length == len(session.tokens)
    alone = opened(model, [*session.tokens, 5])[1].session
    torch.testing.assert_close(session.cache.snapshot(), alone.cache.snapshot(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("length", [PAGE - 2, PAGE + 3])
@torch.inference_mode()
def test_what_the_session_keeps_may_go_over_into_another_page(length):
    """A page that is given back can be another sequence's at once, so it must not be given back first."""
    model, prompt = tiny_model(2), prompt_of(length)
    reader, request = opened(model, prompt)
    pool = PagePool(SHAPE, dtype=torch.float32, device=torch.device("cpu"))
    request.session = Session(PagedCache(pool))
    reader.prepare(request, Prompt(prompt), lambda: False)
    with Branches(reader, request, len(prompt) - 1) as branches:
        first = branches.start(prompt[-1:])
        for _ in range(6):
            branches.go_on([first], [[]])
        branches.leave_to_session(first)
    session = request.session
    assert session.tokens == [*prompt, *first.written[:5]]
    alone = opened(model, [*session.tokens, 5])[1].session
    torch.testing.assert_close(session.cache.snapshot(), alone.cache.snapshot(), atol=1e-4, rtol=1e-4)


def test_an_error_leaves_the_session_as_it_was():
    model, prompt = tiny_model(2), prompt_of(30)
    reader, request = opened(model, prompt)

    @torch.inference_mode()
    def failing():
        with Branches(reader, request, len(prompt) - 1) as branches:
            one = branches.start(prompt[-1:])
            branches.go_on([one], [[1, 2, 3]])
            branches.leave_to_session(one)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert request.session.tokens == prompt[:-1]
    assert request.session.cache.length == len(prompt) - 1


class Watched:
    """Bytes of all KV buffers that are alive, and the most there ever were."""

    def __init__(self, monkeypatch):
        self.now = self.peak = 0
        allocate = kv.allocate

        def watched(*args):
            tensor = allocate(*args)
            size = tensor.nbytes
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(tensor, self.freed, size)
            return tensor

        monkeypatch.setattr(kv, "allocate", watched)

    def freed(self, size):
        self.now -= size


@pytest.mark.parametrize("length", [500, 900, 1500])
@torch.inference_mode()
def test_four_branches_take_at_least_two_fifths_less_memory_than_four_copies(monkeypatch, length):
    """Peak of KV bytes while four texts of 64 tokens are written behind one prompt."""
    model, prompt = tiny_model(2), prompt_of(length)
    starts = (3, 9, 11, 70)
    watched = Watched(monkeypatch)
    reader, request = opened(model, prompt)
    with Branches(reader, request, len(prompt) - 1) as branches:
        together = [branches.start([prompt[-1], token]) for token in starts]
        for _ in range(63):
            branches.go_on(together, [[]] * 4)
    shared = watched.peak
    del branches, request
    watched.now = watched.peak = 0

    copies = [opened(model, prompt) for _ in starts]
    alone = []
    for (reader, request), token in zip(copies, starts, strict=True):
        with Branches(reader, request, len(prompt) - 1) as branches:
            alone.append(branches.start([prompt[-1], token]))
            for _ in range(63):
                branches.go_on(alone[-1:], [[]])
    assert [one.written for one in together] == [one.written for one in alone]
    assert shared <= 0.6 * watched.peak
