"""Products with int8 and float8 rows against their formulas: weird shapes, a tolerance for each dtype."""

import pytest
import torch

from remask.engine.models.checkpoint import quantise
from remask.kernels.confidence_head import confidence_head, reference_confidence_head
from remask.kernels.scaled_product import MOST_ROWS, reference_scaled_product, scaled_product

KINDS = [torch.int8, torch.float8_e4m3fn]
DTYPES = [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["int8", "fp8"])
dtypes = pytest.mark.parametrize(("dtype", "tolerance"), DTYPES, ids=["float32", "bfloat16", "float16"])


def rows_of(out, width, kind, generator):
    return quantise(torch.randn(out, width, generator=generator) / width**0.5, dtype=kind)


@dtypes
@kinds
@pytest.mark.parametrize(
    ("tokens", "out", "width", "splits"),
    [(1, 1, 1, None), (3, 17, 40, 1), (2, 65, 300, 3), (17, 130, 129, None), (129, 5, 64, 1), (0, 8, 8, None)],
)
def test_equals_its_formula(generator, dtype, tolerance, kind, tokens, out, width, splits):
    x = torch.randn(tokens, width, generator=generator).to(dtype)
    rows, scale = rows_of(out, width, kind, generator)
    bias = torch.randn(out, generator=generator).to(dtype) if out % 2 else None
    got = scaled_product(x, rows, scale, bias, block_n=32, block_k=32, splits=splits)
    want = reference_scaled_product(x, rows, scale, bias)
    assert got.dtype == dtype
    torch.testing.assert_close(got.float(), want.float(), atol=tolerance, rtol=tolerance)


@kinds
def test_is_as_near_to_float64_as_float32_allows(generator, kind):
    x = torch.randn(4, 500, generator=generator)
    rows, scale = rows_of(33, 500, kind, generator)
    exact = reference_scaled_product(x.double(), rows, scale.double())
    torch.testing.assert_close(scaled_product(x, rows, scale).double(), exact, atol=1e-5, rtol=1e-5)


@kinds
def test_rows_that_are_not_neighbours_and_any_number_of_tokens(generator, kind):
    rows, scale = rows_of(12, 96, kind, generator)
    some = rows.view(torch.int8)[::2].view(kind)
    x = torch.randn(MOST_ROWS + 1, 96, generator=generator)[:, 16:]
    got = scaled_product(x, some[:, 16:], scale[::2].contiguous(), block_n=16, block_k=32)
    want = reference_scaled_product(x, some[:, 16:], scale[::2])
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@kinds
def test_a_token_comes_out_the_same_beside_others(generator, kind):
    x = torch.randn(16, 200, generator=generator)
    rows, scale = rows_of(40, 200, kind, generator)
    assert torch.equal(scaled_product(x, rows, scale, splits=2)[:1], scaled_product(x[:1], rows, scale, splits=2))


@dtypes
@kinds
@pytest.mark.parametrize(("rows", "vocab", "width"), [(1, 20, 16), (3, 300, 40)])
def test_confidence_of_a_head_of_eight_bits(generator, dtype, tolerance, kind, rows, vocab, width):
    hidden = torch.randn(rows, width, generator=generator).to(dtype)
    head, scale = rows_of(vocab, width, kind, generator)
    never = torch.tensor([2, 19])
    got = confidence_head(hidden, head, never, scale * 8, block_n=32, block_k=32, parts=3)
    want = reference_confidence_head(hidden, head, never, scale * 8)
    assert torch.equal(got.token, want.token)
    for ours, theirs in zip(got[1:], want[1:], strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)
