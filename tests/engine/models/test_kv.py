"""Every kind of KV cache gives its entries back, whole or from a place on, and puts others behind what it keeps."""

import pytest
import torch
from tiny import SHAPE

from remask.engine.models.kv import GROWTH, KVCache
from remask.engine.models.native_kv import BLOCK, NativeCache
from remask.engine.models.paged import PAGE, PagedCache, PagePool

CPU = torch.device("cpu")
KINDS = {
    "plain": (torch.float32, lambda: KVCache(SHAPE, dtype=torch.float32, device=CPU)),
    "paged": (torch.float32, lambda: PagedCache(PagePool(SHAPE, dtype=torch.float32, device=CPU, pages=2))),
    "native": (torch.bfloat16, lambda: NativeCache(SHAPE)),
}


def entries(count, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(2, SHAPE.layers, SHAPE.kv_heads, count, SHAPE.head_dim, generator=generator).to(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, PAGE, PAGE + 1])
@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * PAGE + 1])
def test_others_are_put_behind_what_is_kept(kind, start, count):
    dtype, new = KINDS[kind]
    cache, before, behind = new(), entries(PAGE + 5, dtype, 1), entries(count, dtype, 2)
    cache.restore(before)
    cache.restore(behind, start)
    assert cache.length == start + count
    assert torch.equal(cache.snapshot(), torch.cat([before[:, :, :, :start], behind], 3))
    assert torch.equal(cache.snapshot(start), behind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [3, GROWTH])
def test_a_snapshot_is_a_copy(kind, count):
    dtype, new = KINDS[kind]
    cache = new()
    cache.restore(entries(count, dtype, 1))
    taken = cache.snapshot()
    cache.restore(entries(count, dtype, 2))
    assert torch.equal(taken, entries(count, dtype, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [(2, 9, 2, 4, 8), (2, 2, 2, 4, 9), (2, 2)])
def test_entries_of_another_model_are_refused_and_nothing_is_lost(kind, wrong):
    dtype, new = KINDS[kind]
    cache = new()
    cache.restore(entries(3, dtype, 1))
    for refused in (torch.zeros(wrong, dtype=dtype), torch.zeros(2, 2, 2, 4, 8, dtype=torch.float16)):
        with pytest.raises(ValueError, match="expected"):
            cache.restore(refused)
    assert torch.equal(cache.snapshot(), entries(3, dtype, 1))
