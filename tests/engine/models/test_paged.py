"""Pages: shared beginnings, copies before writing, growth, and the plain cache as the reference."""

import gc

import pytest
import torch
from tiny import SHAPE

from remask.contract.errors import ModelError
from remask.engine.models import paged
from remask.engine.models.kv import KVCache
from remask.engine.models.paged import PAGE, PagedCache, PagePool

CPU = torch.device("cpu")


def pool(pages=4):
    return PagePool(SHAPE, dtype=torch.float32, device=CPU, pages=pages)


def entries(count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(2, SHAPE.layers, SHAPE.kv_heads, count, SHAPE.head_dim, generator=generator)


@pytest.mark.parametrize("count", [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 5])
def test_entries_survive_a_round_trip_in_pages_out_of_order(count):
    shared = pool()
    first, second = PagedCache(shared), PagedCache(shared)
    for cache in (first, second, first):  # takes pages in turn
        cache.truncate(0)
        cache.restore(entries(count))
    assert torch.equal(first.snapshot(), entries(count))
    assert torch.equal(second.snapshot(), entries(count))


def test_writes_as_the_plain_cache_does():
    plain, cache = KVCache(SHAPE, dtype=torch.float32, device=CPU), PagedCache(pool())
    for one in (plain, cache):
        one.restore(entries(70))
        one.reserve(3)
    new = entries(3, seed=2)[:, 0]
    for ours, theirs in zip(cache.write(1, *new), plain.write(1, *new), strict=True):
        assert torch.equal(ours, theirs)
    cache.advance(2)
    plain.advance(2)
    assert torch.equal(cache.snapshot()[:, 1], plain.snapshot()[:, 1])


def test_a_fork_shares_pages_until_one_of_both_writes():
    shared = pool(8)
    cache = PagedCache(shared)
    cache.restore(entries(PAGE + 10))
    other = cache.fork()
    assert other.pages == cache.pages
    assert shared.free == 6
    assert torch.equal(other.snapshot(), cache.snapshot())
    other.reserve(1)
    assert other.pages[0] == cache.pages[0]  # the whole page stays one
    assert other.pages[1] != cache.pages[1]
    other.write(0, *entries(1, seed=3)[:, 0])
    other.advance(1)
    assert torch.equal(cache.snapshot(), entries(PAGE + 10))
    assert torch.equal(other.snapshot()[:, :, :, : PAGE + 10], entries(PAGE + 10))
    cache.truncate(5)
    assert torch.equal(other.snapshot()[:, :, :, : PAGE + 10], entries(PAGE + 10))


def test_pages_come_back_when_a_sequence_is_cut_or_forgotten():
    shared = pool(4)
    cache, kept = PagedCache(shared), PagedCache(shared)
    cache.restore(entries(3 * PAGE))
    kept.restore(entries(2))
    assert shared.free == 0
    cache.truncate(PAGE)
    assert shared.free == 2
    del cache
    gc.collect()
    assert shared.free == 3
    assert torch.equal(kept.snapshot(), entries(2))


def test_a_full_pool_grows_and_keeps_what_it_holds():
    shared = pool(1)
    cache = PagedCache(shared)
    cache.restore(entries(5 * PAGE))
    assert shared.generation == 3
    assert shared.buffer.shape[2] == 8
    assert torch.equal(cache.snapshot(), entries(5 * PAGE))
    assert cache.page_table().tolist() == cache.pages


def test_short_memory_is_met_by_smaller_steps_and_then_said(monkeypatch):
    shared, room = pool(4), [7]
    cache = PagedCache(shared)

    def allocate(sizes, dtype, device, tokens):
        if sizes[2] > room[0]:
            raise ModelError(f"Reading {tokens} tokens needs 1 GB")
        return torch.empty(sizes, dtype=dtype, device=device)

    monkeypatch.setattr(paged, "allocate", allocate)
    cache.restore(entries(6 * PAGE))
    assert shared.buffer.shape[2] == 6  # 8 did not fit
    with pytest.raises(ModelError, match="Reading 512 tokens needs"):
        cache.reserve(2 * PAGE)
    assert torch.equal(cache.snapshot(), entries(6 * PAGE))


def test_entries_of_another_model_are_refused():
    with pytest.raises(ValueError, match="expected"):
        PagedCache(pool()).restore(torch.zeros(2, 9, 2, 4, 8))
