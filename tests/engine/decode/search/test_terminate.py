"""When a search ends: on a first text that is likely enough, on convergence, on its budget."""

import pytest

from remask.engine.decode.search.terminate import converged, spent, sure_enough


@pytest.mark.parametrize(("likely", "enough", "ends"), [(-0.5, 1.0, True), (-1.0, 1.0, True), (-1.5, 1.0, False)])
def test_a_sure_first_text_is_enough(likely, enough, ends):
    assert bool(sure_enough(likely, enough)) is ends


@pytest.mark.parametrize(
    ("best", "new", "ends"),
    [
        ([-9], [], False),
        ([-9, -8], [3], False),
        ([-9, -9], [3], False),
        ([-9, -9, -9], [3, 2], True),
        ([-9, -9, -8], [3, 2], False),
        ([-9, -8, -8, -8], [3, 2, 2], True),
        ([-9, -8], [0], True),
    ],
)
def test_a_search_that_finds_nothing_better_has_converged(best, new, ends):
    assert bool(converged(best, new)) is ends


@pytest.mark.parametrize(("steps", "tokens", "ends"), [(0, 0, False), (1, 99, False), (2, 0, True), (1, 100, True)])
def test_steps_and_tokens_are_a_budget(steps, tokens, ends):
    assert bool(spent(steps, 2, tokens, 100)) is ends
