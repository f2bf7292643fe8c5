"""Copies are found, exact and near; different files are kept."""

import numpy as np
import pytest

from remask.engine.training.corpus.duplicates import Duplicates, hashed_lines, jaccard


def lines(*numbers):
    return [f"result_{n} = compute({n}, scale={n * 7})" for n in numbers]


def text(numbers):
    return "\n".join(lines(*numbers))


def test_copies_are_told_from_new_files():
    seen = Duplicates()
    assert seen.kind_of(text(range(100))) is None
    assert seen.kind_of(text(range(100))) == "exact copy"
    assert seen.kind_of("\n\n".join("    " + line for line in lines(*range(100)))) == "exact copy"
    assert seen.kind_of(text([*range(95), 1000, 1001])) == "near copy"
    assert seen.kind_of(text([*range(50), *range(1000, 1050)])) is None
    assert seen.kind_of(text(range(500, 600))) is None


@pytest.mark.parametrize("seed", range(20))
def test_near_copies_are_found_whatever_the_lines(seed):
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(10_000)[:200].tolist()
    seen = Duplicates()
    assert seen.kind_of(text(numbers)) is None
    assert seen.kind_of(text(rng.permutation(numbers[:180]).tolist())) == "near copy"


def test_empty_files_are_no_copies_of_each_other():
    seen = Duplicates()
    assert [seen.kind_of("x\n"), seen.kind_of("y\n")] == [None, None]


def test_jaccard_against_sets():
    for a, b in [(range(10), range(10)), (range(10), range(2, 10)), (range(4), range(50)), (range(3), range(9, 12))]:
        x, y = set(lines(*a)), set(lines(*b))
        true = len(x & y) / len(x | y)
        measured = jaccard(hashed_lines("\n".join(x)), hashed_lines("\n".join(y)))
        assert measured == pytest.approx(true if true >= 0.75 else measured)
        assert (measured >= 0.75) is (true >= 0.75)
