"""Rows hold whole examples, every one exactly once, and little padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.engine.training.corpus import packing
from remask.engine.training.corpus.packing import pack, shuffled


@given(st.lists(st.integers(1, 64), max_size=60))
def test_every_example_is_in_one_row(lengths):
    rows = pack(lengths, 64)
    assert sorted(n for row in rows for n in row) == list(range(len(lengths)))
    assert all(row and sum(lengths[n] for n in row) <= 64 for row in rows)


def test_rows_are_well_filled():
    lengths = [60 + (i * 7919) % 453 for i in range(3_000)]
    assert sum(lengths) / (512 * len(pack(lengths, 512))) > 0.95


def test_far_examples_share_no_row(monkeypatch):
    """Else the longest of a whole corpus would stand together, whatever its order."""
    monkeypatch.setattr(packing, "CHUNK", 10)
    assert all(len({n // 10 for n in row}) == 1 for row in pack([5] * 100, 64))


def test_an_example_longer_than_a_row_is_a_defect():
    with pytest.raises(ValueError, match="65 tokens"):
        pack([65], 64)


def test_the_seed_decides_the_order():
    assert sorted(shuffled(100, 1).tolist()) == list(range(100))
    assert shuffled(100, 1).tolist() == shuffled(100, 1).tolist() != shuffled(100, 2).tolist()
