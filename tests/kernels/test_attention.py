"""Canvas attention against its formula: pages out of order, shared prefixes, odd lengths, every mode."""

import pytest
import torch

from remask.kernels.attention import Mode, canvas_attention, reference_canvas_attention

CASES = {  # contexts, new tokens of each sequence, heads, KV heads, head_dim
    "one canvas": ([37], [8], 4, 2, 16),
    "no context": ([0], [5], 3, 3, 24),
    "branches": ([33, 33, 33], [4, 4, 4], 9, 3, 64),
    "unlike": ([1, 64, 16], [1, 19, 3], 2, 1, 32),
}


def case(contexts, counts, heads, kv_heads, dim, dtype, page=16, shared=True):
    generator = torch.Generator().manual_seed(3)
    make = lambda *size: torch.randn(*size, generator=generator).to(dtype)  # noqa: E731
    most = max(-(-c // page) for c in contexts) or 1
    pages = most * len(contexts) + 3
    order = torch.randperm(pages, generator=generator).int()
    rows = [
        order[:most] if shared and c == contexts[0] else order[i * most : (i + 1) * most]
        for i, c in enumerate(contexts)
    ]
    starts = torch.tensor([0, *counts]).cumsum(0).int()
    total = int(starts[-1])
    return {
        "q": make(total, heads, dim),
        "k": make(total, kv_heads, dim),
        "v": make(total, kv_heads, dim),
        "key_pages": make(pages, page, kv_heads, dim),
        "value_pages": make(pages, page, kv_heads, dim),
        "table": torch.stack(rows),
        "contexts": torch.tensor(contexts).int(),
        "starts": starts,
    }


@pytest.mark.parametrize("mode", list(Mode), ids=lambda m: m.name.lower())
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)], ids=["f32", "bf16"])
def test_equals_its_formula(name, mode, dtype, tolerance):
    inputs = case(*CASES[name], dtype)
    if mode == Mode.MASKED:
        drawn = torch.rand(len(inputs["q"]), len(inputs["q"]), generator=torch.Generator().manual_seed(1))
        inputs["mask"] = (drawn < 0.5).fill_diagonal_(True)
    got = canvas_attention(**inputs, mode=mode, block=4)
    want = reference_canvas_attention(**inputs, mode=mode, block=4)
    torch.testing.assert_close(got.float(), want.float(), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("past", [1, 5, 16, 20, 70])
@pytest.mark.parametrize("name", ["branches", "unlike", "no context"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)], ids=["f32", "bf16"])
def test_masks_that_hide_the_end_of_the_context(name, past, dtype, tolerance):
    """Branches behind a shared beginning; a mask may cover more than there is, and hide whole tiles from a row."""
    inputs = case(*CASES[name], dtype)
    count = len(inputs["q"])
    mask = torch.rand(count, past + count, generator=torch.Generator().manual_seed(past)) < 0.4
    mask[:, past:].fill_diagonal_(True)
    mask[0, :past] = False
    inputs["mask"] = mask
    got = canvas_attention(**inputs, mode=Mode.MASKED)
    want = reference_canvas_attention(**inputs, mode=Mode.MASKED)
    torch.testing.assert_close(got.float(), want.float(), atol=tolerance, rtol=tolerance)


def test_what_a_mask_hides_of_the_context_does_not_count():
    inputs = case([33], [2], 2, 1, 16, torch.float32)
    mask = torch.zeros(2, 30 + 2, dtype=torch.bool)  # sees the first three entries, and itself
    mask[:, 30:].fill_diagonal_(True)
    want = canvas_attention(**inputs | {"mask": mask}, mode=Mode.MASKED)
    for pages in (inputs["key_pages"], inputs["value_pages"]):
        pages[inputs["table"][0, 0].long(), 3:] = 1e3
        pages[inputs["table"][0, 1:].long()] = 1e3
    assert torch.equal(canvas_attention(**inputs | {"mask": mask}, mode=Mode.MASKED), want)


def test_pages_inside_a_contiguous_cache_are_views():
    """[kv_heads, capacity, head_dim] as pages, without a copy: what the engine's own cache is."""
    inputs = case([20], [3], 4, 2, 16, torch.float32)
    cache = torch.randn(2, 2, 48, 16)  # keys and values, [kv_heads, capacity, head_dim]
    views = [half.unflatten(1, (3, 16)).permute(1, 2, 0, 3) for half in cache]
    inputs |= {"key_pages": views[0], "value_pages": views[1], "table": torch.tensor([[0, 1, 2]]).int()}
    got = canvas_attention(**inputs, mode=Mode.BIDIRECTIONAL, longest=3)
    want = reference_canvas_attention(**inputs, mode=Mode.BIDIRECTIONAL)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


def test_stale_slots_behind_the_context_do_not_count():
    inputs = case([5], [2], 2, 1, 16, torch.float32)
    want = canvas_attention(**inputs, mode=Mode.CAUSAL)
    for pages in (inputs["key_pages"], inputs["value_pages"]):
        pages[inputs["table"][0, 0].long(), 5:] = 1e30
    assert torch.equal(canvas_attention(**inputs, mode=Mode.CAUSAL), want)
