"""Windows are whole lines within their bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.engine.training.corpus.holes import Hole
from remask.engine.training.corpus.windows import Lines, WindowBounds, prefix_start, suffix_end

TEXT = "".join(f"line {i} {'x' * (i * 7 % 40)}\n" for i in range(60))


def lines(text=TEXT):
    return Lines(text, [len(line) for line in text.split("\n")])


@given(st.integers(0, len(TEXT)), st.integers(0, len(TEXT)))
def test_costs_of_a_byte_tokenizer_are_lengths(a, b):
    start, end = sorted((a, b))
    assert lines().cost(start, end) == pytest.approx(end - start)


@given(st.integers(0, len(TEXT)), st.integers(0, 500))
def test_lines_within_a_bound(at, bound):
    first, last = lines().first_within(at, bound), lines().last_within(at, bound)
    assert first == 0 or TEXT[first - 1] == "\n"
    assert at - first <= max(bound, at - (TEXT.rfind("\n", 0, at) + 1))
    assert last == at or TEXT[min(last, len(TEXT)) - 1] == "\n"
    assert last - at <= bound + 1


@given(st.integers(1, len(TEXT) - 1), st.integers(0, 2**32), st.booleans())
def test_windows_of_a_hole(at, seed, cut_off):
    hole, bounds = Hole("open" if cut_off else "span", at, min(len(TEXT), at + 9), None), WindowBounds()
    rng = np.random.default_rng(seed)
    start = prefix_start(lines(), hole, bounds, 300, rng)
    end = suffix_end(lines(), hole, len(TEXT), bounds, rng)
    assert start <= at <= hole.end <= end <= len(TEXT)
    assert start == 0 or TEXT[start - 1] == "\n"
    assert end - hole.end <= bounds.suffix
    assert not cut_off or end == hole.end
