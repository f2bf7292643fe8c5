"""Choosing tokens: greedy at temperature 0, the right distribution above it, the same draw for the same seed."""

import torch

from remask.engine.decode.sample import choose


def test_temperature_zero_takes_the_best():
    scores = torch.tensor([[0.0, 2.0, 1.0], [3.0, 2.0, -torch.inf]])
    tokens, probability = choose(scores, 0.0, [0, 1])
    assert tokens.tolist() == [1, 0]
    torch.testing.assert_close(probability, scores.softmax(-1).max(-1).values)


def test_draws_follow_the_tempered_distribution():
    scores = torch.tensor([[0.0, 1.0, 2.0]]).expand(20_000, 3)
    tokens, _ = choose(scores, 0.5, range(20_000))
    share = torch.bincount(tokens, minlength=3) / len(tokens)
    torch.testing.assert_close(share, (scores[0] / 0.5).softmax(-1), atol=0.015, rtol=0)  # 4 sigma is 0.014


def test_what_is_forbidden_is_never_drawn():
    scores = torch.tensor([[0.0, -torch.inf, 0.0]]).expand(2_000, 3)
    assert 1 not in choose(scores, 5.0, range(2_000))[0]


def test_a_draw_depends_on_its_own_seed_alone():
    """However many rows a pass draws for, a place in the text gets the same token."""
    scores = torch.randn(5, 90, generator=torch.Generator().manual_seed(1))
    together = choose(scores, 1.0, [7, 8, 9, 10, 11])[0]
    assert torch.equal(together[1:3], choose(scores[1:3], 1.0, [8, 9])[0])
    assert not torch.equal(together, choose(scores, 1.0, [1, 2, 3, 4, 5])[0])
