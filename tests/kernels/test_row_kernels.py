"""RMS norm, confidence and rotary against their formulas: weird shapes, a tolerance for each dtype."""

import pytest
import torch

from remask.kernels.confidence import confidence, reference_confidence
from remask.kernels.confidence_head import confidence_head, reference_confidence_head
from remask.kernels.rms_norm import reference_rms_norm, rms_norm
from remask.kernels.rotary import reference_rotary, rotary

DTYPES = [(torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)]
dtypes = pytest.mark.parametrize(("dtype", "tolerance"), DTYPES, ids=["float32", "bfloat16", "float16"])
NONE = torch.tensor([], dtype=torch.int64)


def same(got, want, dtype, tolerance):
    torch.testing.assert_close(
        got.float(), want.float(), atol=tolerance, rtol=tolerance, msg=lambda m: f"{dtype} {tuple(got.shape)}: {m}"
    )


@dtypes
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 17), (2, 576), (5, 1000), (0, 8)])
def test_rms_norm(generator, dtype, tolerance, rows, columns):
    x = torch.randn(rows, columns, generator=generator).to(dtype)
    weight = torch.rand(columns, generator=generator).to(dtype)
    same(rms_norm(x, weight, 1e-5), reference_rms_norm(x, weight, 1e-5), dtype, tolerance)


def test_rms_norm_of_rows_that_are_not_neighbours(generator):
    x = torch.randn(4, 20, generator=generator)[:, :12]
    weight = torch.rand(12, generator=generator)
    same(rms_norm(x, weight, 1e-6), reference_rms_norm(x, weight, 1e-6), torch.float32, 1e-5)


@dtypes
@pytest.mark.parametrize(
    ("rows", "vocab", "block"), [(1, 3, 16), (3, 17, 16), (2, 300, 64), (4, 1000, 4096), (0, 9, 16)]
)
@pytest.mark.parametrize("forbidden", [[], [0], [1, 0, 1]])
def test_confidence(generator, dtype, tolerance, rows, vocab, block, forbidden):
    logits = (torch.randn(rows, vocab, generator=generator) * 5).to(dtype)
    never = torch.tensor(forbidden, dtype=torch.int64)
    got, want = confidence(logits, never, block), reference_confidence(logits, never)
    assert torch.equal(got.token, want.token)
    for g, w in zip(got[1:], want[1:], strict=True):
        same(g, w, dtype, 1e-4)


def test_equal_tokens_go_to_the_lower_one_and_nan_free():
    logits = torch.zeros(2, 100)
    logits[1, [70, 30]] = 3.0
    got = confidence(logits, torch.tensor([0]), 16)
    assert got.token.tolist() == [1, 30]
    assert got.margin[1] == 0.0
    torch.testing.assert_close(got.entropy[0], torch.tensor(99.0).log())


def test_a_row_that_is_certain():
    logits = torch.full((1, 64), -1e4)
    logits[0, 5] = 1e4
    got = confidence(logits, NONE, 16)
    assert (got.token.item(), got.probability.item(), got.entropy.item(), got.margin.item()) == (5, 1.0, 0.0, 1.0)


@dtypes
@pytest.mark.parametrize(("rows", "vocab", "width", "parts"), [(1, 20, 16, 4), (3, 300, 40, 3), (17, 129, 72, 64)])
def test_confidence_head(generator, dtype, tolerance, rows, vocab, width, parts):
    hidden = torch.randn(rows, width, generator=generator).to(dtype)
    head = torch.randn(vocab, width, generator=generator).to(dtype)
    never = torch.tensor([2, 19], dtype=torch.int64)
    got = confidence_head(hidden, head, never, block_n=32, block_k=32, parts=parts)
    want = reference_confidence_head(hidden, head, never)
    assert torch.equal(got.token, want.token)
    for g, w in zip(got[1:], want[1:], strict=True):
        same(g, w, dtype, 1e-3)


@dtypes
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(1, 1, 2), (9, 3, 64), (4, 2, 24)])
@pytest.mark.parametrize("normed", [False, True])
def test_rotary(generator, dtype, tolerance, heads, kv_heads, dim, normed):
    count = 5
    qkv = torch.randn(count, heads + 2 * kv_heads, dim, generator=generator).to(dtype)
    positions = torch.tensor([0, 1, 7, 900, 6])
    frequency = 10000.0 ** -(torch.arange(dim // 2).float() * 2 / dim)
    norms = tuple(torch.rand(dim, generator=generator).to(dtype) for _ in range(2)) if normed else None
    slots = torch.tensor([3, 0, 9, 4, 8])
    written = [[torch.zeros(11, kv_heads, dim, dtype=dtype) for _ in range(2)] for _ in range(2)]
    got = rotary(qkv, positions, frequency, norms, 1e-6, *written[0], slots, heads)
    want = reference_rotary(qkv, positions, frequency, norms, 1e-6, *written[1], slots, heads)
    same(got, want, dtype, max(tolerance, 1e-4))
    for ours, theirs in zip(*written, strict=True):
        same(ours, theirs, dtype, max(tolerance, 1e-4))
        assert not ours[[1, 2, 5, 6, 7, 10]].any()
