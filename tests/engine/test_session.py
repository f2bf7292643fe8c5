"""A session keeps what two prompts share, and warm equals cold."""

import pytest
import torch
from tiny import SHAPE, tiny_model

from remask.contract.errors import ModelError
from remask.engine.models.paged import PagedCache, PagePool
from remask.engine.models.passes import Pass
from remask.engine.session import PREFILL_CHUNK, Session, Sessions


@pytest.fixture
def transformer():
    return tiny_model().transformer


def prepare(session, prompt, transformer, cancelled=lambda: False):
    """Read all of a prompt but its newest token, as a causal reader does."""
    kept = session.cut_to(prompt[:-1])
    return session.extend(
        prompt[kept:-1],
        lambda chunk, start: transformer.forward(Pass.causal(chunk, start, transformer.device), session.cache),
        cancelled,
    )


@pytest.fixture
def session(transformer):
    return Session(transformer.new_cache())


def test_keystroke_runs_only_the_new_token(session, transformer):
    prepare(session, [1, 2, 3, 4], transformer)
    counts = prepare(session, [1, 2, 3, 4, 5], transformer)
    assert (counts.cached, counts.run, counts.passes) == (3, 1, 1)


def test_same_prompt_runs_nothing(session, transformer):
    prepare(session, [1, 2, 3, 4], transformer)
    counts = prepare(session, [1, 2, 3, 4], transformer)
    assert (counts.cached, counts.run, counts.passes) == (3, 0, 0)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ([1, 2, 3], [9, 2, 3], 0),
        ([1, 2, 3, 4, 5], [1, 2, 9, 4, 5], 2),
        ([1, 2, 3, 4, 5], [1, 2], 1),  # the newest token is always run anew
        ([1], [1, 2], 0),
        ([1, 2, 3], [1], 0),
    ],
)
def test_edit_keeps_what_lies_before_it(session, transformer, first, second, kept):
    prepare(session, first, transformer)
    assert prepare(session, second, transformer).cached == kept
    assert session.tokens == second[:-1]
    assert session.cache.length == len(second) - 1


@pytest.mark.parametrize("length", [PREFILL_CHUNK - 1, PREFILL_CHUNK, PREFILL_CHUNK + 1, PREFILL_CHUNK + 2])
def test_warm_equals_cold_around_the_chunk_size(transformer, length):
    prompt = [(13 * i) % 256 for i in range(length)]
    cold, warm = Session(transformer.new_cache()), Session(transformer.new_cache())
    prepare(cold, prompt, transformer)
    prepare(warm, [*prompt[: length // 2], 255, 254], transformer)
    prepare(warm, prompt, transformer)
    device = transformer.device
    rows = [transformer.forward(Pass.causal(prompt[-1:], s.cache.length, device), s.cache) for s in (cold, warm)]
    torch.testing.assert_close(rows[0], rows[1], atol=1e-4, rtol=1e-4)


def test_cancelling_between_chunks_leaves_a_usable_session(session, transformer):
    prompt = [i % 256 for i in range(3 * PREFILL_CHUNK)]
    answers = iter([False, True])
    counts = prepare(session, prompt, transformer, lambda: next(answers))
    assert counts.run == PREFILL_CHUNK
    assert prepare(session, prompt, transformer).cached == PREFILL_CHUNK
    assert session.tokens == prompt[:-1]


def test_sessions_do_not_share_state(transformer):
    sessions = Sessions(transformer)
    prepare(sessions.open("a"), [1, 2, 3], transformer)
    assert sessions.open("b").tokens == []
    assert sessions.open("a").tokens == [1, 2]


def test_least_recently_used_session_goes_first(transformer):
    one = transformer.new_cache().nbytes
    sessions = Sessions(transformer, budget_bytes=2 * one)
    for name in ("a", "b"):
        sessions.open(name)
    sessions.open("a")
    sessions.open("c")
    sessions.trim()
    assert sessions.documents() == ["a", "c"]


def test_a_session_larger_than_the_budget_is_still_served(transformer):
    sessions = Sessions(transformer, budget_bytes=1)
    sessions.open("a")
    sessions.open("b")
    sessions.trim()
    assert sessions.documents() == ["b"]


@pytest.mark.parametrize(("step", "kept"), [(1, 7), (2, 6), (4, 4), (8, 0)])
def test_whole_blocks_only(session, transformer, step, kept):
    prepare(session, list(range(10)), transformer)
    assert session.cut_to([0, 1, 2, 3, 4, 5, 6, 99], step=step) == kept


def failing(most, transformer, session, sizes, message="CUDA out of memory. Tried to allocate 2.00 GiB."):
    """A forward that has memory for `most` tokens."""

    def forward(chunk, start):
        sizes.append(len(chunk))
        if len(chunk) > most:
            raise torch.OutOfMemoryError(message)
        transformer.forward(Pass.causal(chunk, start, transformer.device), session.cache)

    return forward


def test_short_memory_halves_the_chunks_and_they_stay_small(session, transformer):
    tokens, sizes = [(7 * i) % 256 for i in range(300)], []
    counts = session.extend(tokens, failing(70, transformer, session, sizes))
    assert sizes == [256, 128, 64, 64, 64, 64, 44]
    assert (counts.run, counts.passes, session.tokens) == (300, 5, tokens)
    whole = Session(transformer.new_cache())
    whole.extend(tokens, failing(256, transformer, whole, []))
    torch.testing.assert_close(session.cache.snapshot(), whole.cache.snapshot(), atol=1e-5, rtol=1e-5)
    sizes.clear()
    session.extend([1] * 70, failing(70, transformer, session, sizes))
    assert sizes == [64, 6]


def test_chunks_are_whole_steps_down_to_one_and_then_it_is_said_with_the_sizes(session, transformer):
    sizes = []
    said = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a capacity of 8 GiB of which 31.00 MiB is free."
    with pytest.raises(ModelError, match=r"over 24 tokens .*\(2.00 GiB more, of which 31.00 MiB is free\)"):
        session.extend([1] * 300, failing(7, transformer, session, sizes, said), step=24)
    assert sizes == [240, 120, 48, 24]
    assert session.tokens == []
    assert session.extend([1, 2], failing(7, transformer, session, [])).run == 2


def test_other_errors_are_not_taken_for_short_memory(session):
    def forward(chunk, start):
        raise RuntimeError("expected scalar type Float")

    with pytest.raises(RuntimeError, match="scalar type"):
        session.extend([1, 2], forward)


def test_sessions_of_a_card_share_the_pages_of_what_they_have_in_common():
    def new_cache():
        return PagedCache(pool)

    pool = PagePool(SHAPE, dtype=torch.float32, device=torch.device("cpu"), pages=8)
    transformer = tiny_model().transformer
    transformer.new_cache = new_cache
    sessions, prompts = Sessions(transformer), [[*range(140), 1, 2], [*range(130), 7, 8, 9]]
    counts = [prepare(sessions.open(name), p, transformer) for name, p in zip("ab", prompts, strict=True)]
    assert [c.cached for c in counts] == [0, 130]
    first, second = (sessions.open(name) for name in "ab")
    assert first.cache.pages[:2] == second.cache.pages[:2]
    assert first.cache.pages[2] != second.cache.pages[2]
    for session, prompt in zip((first, second), prompts, strict=True):
        alone = Session(tiny_model().transformer.new_cache())
        prepare(alone, prompt, tiny_model().transformer)
        torch.testing.assert_close(session.cache.snapshot(), alone.cache.snapshot(), atol=1e-5, rtol=1e-5)
