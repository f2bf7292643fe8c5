"""Acceptance: exact and bounded, as a pure function and through the loop."""

import math

import pytest
import torch
from reference import reference_greedy, reference_logits
from tiny import END, MASK, PREFIX, SHAPE, SUFFIX, random_weights, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.accept import accepted, heard
from remask.engine.decode.drafters import Draft, Drafter
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import Policy, Verify
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.prompt import Prompt
from remask.engine.session import Session

NEVER = [MASK, PREFIX, SUFFIX]
OPEN = StopRules(Reason.BLOCK, "", lambda _: None)


def told(draft, own, scores, ratio=1.0):
    probability = scores.softmax(-1).gather(1, torch.tensor(own)[:, None])[:, 0]
    return heard(draft, torch.tensor(own), probability, scores, ratio)[0]


@pytest.mark.parametrize(
    ("draft", "own", "count"),
    [([], [5], 0), ([1, 2, 3], [1, 2, 3, 4], 3), ([1, 4, 3], [1, 2, 3, 4], 1), ([4, 2], [1, 2, 3], 0)],
)
def test_exact_acceptance_is_equality(draft, own, count):
    scores = torch.zeros(len(draft) + 1, 6)  # a tie everywhere does not matter
    assert accepted(draft, told(draft, own, scores)) == count


@pytest.mark.parametrize(
    ("ratio", "count"),
    [(1.0, 1), (0.61, 1), (0.6, 2), (0.31, 2), (0.3, 3), (0.001, 3)],
)
def test_bounded_acceptance_measures_against_the_best_token(ratio, count):
    probability = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.5, 0.3, 0.2, 0.0], [0.6, 0.18, 0.22, 0.0], [0.25] * 4])
    drafted = [0, 1, 1]  # the best, 0.6 of the best, 0.3 of the best
    said = told(drafted, [0, 0, 0, 0], probability.log() + 1e-6, ratio - 1e-5 if ratio < 1 else 1.0)
    assert accepted(drafted, said) == count


def test_a_forbidden_token_is_never_near():
    scores = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    assert accepted([1], told([1], [0, 0], scores, 0.001)) == 0


def test_log_probability_of_a_drafts_tokens_and_an_own_one():
    scores = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    own = scores.argmax(-1).tolist()
    draft = [3, own[1], 5]
    got = told(draft, own, scores, 0.01).log_probability([*draft, own[3]])
    assert got == pytest.approx(scores.log_softmax(-1)[range(4), [*draft, own[3]]].tolist(), abs=1e-5)


def test_what_else_is_brought_over_is_as_it_was():
    also = (torch.tensor([[7, 2**24 - 1]]), torch.tensor([True, False]), torch.rand(3))
    _, here = heard([], torch.tensor([1]), torch.ones(1), torch.zeros(1, 3), also=also)
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(here, also, strict=True))


class SecondBest(Drafter):
    """Drafts the second best token of the naive transformer, three times in a row."""

    def __init__(self, weights):
        self._weights = weights

    def propose(self, request, size):
        row, draft = [*request.session.tokens, *request.pending], []
        for _ in range(min(size, 3)):
            draft.append(naive_scores(self._weights, row + draft)[-1].topk(2).indices[1].item())
        return Draft(draft)


def naive_scores(weights, row):
    scores = reference_logits(weights, SHAPE, row, torch.ones(len(row), len(row), dtype=torch.bool).tril())
    scores[:, NEVER] = -torch.inf
    return scores


def naive_bounded(weights, prompt, count, ratio):
    """One token at a time, in rounds of three drafted tokens and one of the model's own."""
    row = list(prompt)
    while len(row) < len(prompt) + count:
        for place in range(4):
            best, second = naive_scores(weights, row)[-1].log_softmax(-1).topk(2)
            last = len(row) == len(prompt) + count - 1  # the budget's last token is never a drafted one
            take = place < 3 and not last and bool(best[1] - best[0] >= math.log(ratio))
            row.append(int(second[1] if take else second[0]))
            if row[-1] == END:
                return row[len(prompt) : -1]
            if not take:
                break
    return row[len(prompt) :]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ratio", [0.8, 0.3, 0.001])
def test_bounded_verification_equals_the_naive_decoder(seed, ratio, monkeypatch):
    weights, prompt = random_weights(seed=seed), [PREFIX, *range(40, 52)]
    monkeypatch.setattr("remask.engine.decode.loop.drafters_for", lambda *_: [SecondBest(weights)])
    written = {}
    for verify in (Verify.BOUNDED, Verify.EXACT):
        model = tiny_model(seed)
        policy = Policy(name="test", verify=verify, ratio=ratio)
        request = Request(Session(model.transformer.new_cache()), policy, Budget(16))
        decoder = Decoder(model)
        decoder.prepare(request, Prompt(prompt))
        decoder.decode(request, OPEN)
        written[verify] = request.written
        row = [*prompt, *request.written]
        sureness = naive_scores(weights, row).log_softmax(-1)[range(len(prompt) - 1, len(row) - 1), request.written]
        assert request.sureness[: len(request.written)] == pytest.approx(sureness.tolist(), abs=1e-3)
        assert request.session.tokens == row[: len(request.session.tokens)]
    assert written[Verify.BOUNDED] == naive_bounded(weights, prompt, 16, ratio)
    assert written[Verify.EXACT] == reference_greedy(weights, SHAPE, prompt, 16, END, NEVER)
    assert ratio > 0.01 or written[Verify.BOUNDED] != written[Verify.EXACT]
