"""Penalties against naive readings: functions in plain numbers, and whole texts written one token at a time."""

import math
from functools import lru_cache

import pytest
import torch
from reference import reference_logits
from tiny import END, MASK, PREFIX, SHAPE, SPEC, SUFFIX, random_weights, tiny_model

from remask.contract.errors import InputError
from remask.contract.messages import CompletionRequest, Reason
from remask.engine.api import Engine
from remask.engine.control.penalties import contrasted, degeneration, repeated
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import POLICIES, policy_named, searching
from remask.engine.decode.policy import Policy, Verify
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.models.passes import Pass
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
NEVER = [MASK, PREFIX, SUFFIX]
PROMPT = [SUFFIX, *b"def f(a):\n", PREFIX, *b"def g(a, a):\n  a"]
EXACT = [
    "autoregressive",
    "default",
    "default:canvas=5,passes=2",
    "single_pass",
    "lookup",
    "lookup_single_pass",
    "auto",
]


def decode(model, policy, most=24, **more):
    request = Request(Session(model.transformer.new_cache()), policy, Budget(most), **more)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(PROMPT))
    decoder.decode(request, OPEN)
    return request


def test_the_repetition_penalty_is_that_of_its_source():
    scores = torch.tensor([[2.0, -1.0, 0.5, -torch.inf], [2.0, -1.0, 0.5, 3.0]])
    found = repeated(scores, [[0, 1, 0, 3], []], 2.0)
    assert found.tolist() == [[1.0, -2.0, 0.5, -math.inf], [2.0, -1.0, 0.5, 3.0]]
    assert scores[0, 0] == 2.0  # what was given stays


def cosine(a, b):
    def dot(x, y):
        return sum(one * other for one, other in zip(x, y, strict=True))

    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def test_degeneration_is_the_greatest_cosine():
    candidates, earlier = torch.randn(3, 8), torch.randn(5, 8)
    want = [max(cosine(c, e) for e in earlier.tolist()) for c in candidates.tolist()]
    assert degeneration(candidates, earlier).tolist() == pytest.approx(want, abs=1e-5)


def test_the_value_weighs_both_and_never_takes_what_is_out_of_reach():
    value = contrasted(torch.tensor([0.5, 0.3, 0.0]), torch.tensor([0.9, -0.2, -1.0]), 0.6)
    assert value.tolist() == pytest.approx([0.4 * 0.5 - 0.6 * 0.9, 0.4 * 0.3 + 0.6 * 0.2, -math.inf])


def naive_repetition(weights, penalty, most):
    """Greedy decoding with the penalty, from the whole row each time."""
    written = []
    while len(written) < most:
        row = [*PROMPT, *written]
        scores = reference_logits(weights, SHAPE, row, torch.ones(len(row), len(row), dtype=torch.bool).tril())[-1]
        scores[NEVER] = -torch.inf
        for token in set(written):
            scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
        token = int(scores.argmax())
        if token == END:
            break
        written.append(token)
    return written


@pytest.mark.parametrize("policy", EXACT)
@pytest.mark.parametrize("seed", [0, 3])
def test_a_penalised_text_is_that_of_one_token_at_a_time(policy, seed):
    chosen = policy_named(f"{policy}{',' if ':' in policy else ':'}repetition=1.4", SPEC)
    assert decode(tiny_model(seed), chosen).written == naive_repetition(random_weights(seed=seed), 1.4, 24)


@lru_cache
@torch.inference_mode()
def naive_contrast(seed, alpha, top, most):
    """Contrastive search as its source has it: every candidate in a row of its own, nothing kept."""
    model = tiny_model(seed)

    def states(row):
        hidden = model.transformer.forward(Pass.causal(row, 0, model.transformer.device), model.transformer.new_cache())
        return hidden, model.transformer.normed(hidden)

    written = []
    while len(written) < most:
        row = [*PROMPT, *written]
        hidden, normed = states(row)
        scores = model.transformer.logits(hidden[-1:])[0]
        scores[NEVER] = -torch.inf
        probability, tokens = scores.softmax(-1).topk(top)
        earlier = torch.nn.functional.normalize(normed[len(PROMPT) - 1 :], dim=-1)
        values = []
        for p, token in zip(probability.tolist(), tokens.tolist(), strict=True):
            own = torch.nn.functional.normalize(states([*row, token])[1][-1], dim=-1)
            values.append((1 - alpha) * p - alpha * float((earlier @ own).max()))
        token = int(tokens[values.index(max(values))])
        if token == END:
            break
        written.append(token)
    return written


@pytest.mark.parametrize("policy", EXACT)
@pytest.mark.parametrize(("alpha", "top"), [(0.6, 4), (0.9, 8)])
def test_a_contrastive_text_is_that_of_its_source_one_token_at_a_time(policy, alpha, top):
    model = tiny_model(3)
    chosen = policy_named(f"{policy}{',' if ':' in policy else ':'}contrast={alpha},contrasted={top}", SPEC)
    request = decode(model, chosen)
    assert request.written == naive_contrast(3, alpha, top, 24)
    assert request.written != decode(model, POLICIES["autoregressive"]).written
    assert request.session.tokens == [*PROMPT, *request.written][: len(request.session.tokens)]


def test_the_cache_after_a_contrastive_text_is_that_of_the_text():
    model = tiny_model(3)
    request = decode(model, policy_named("single_pass:contrast=0.6,canvas=4", SPEC))
    held, cold = request.session.tokens, model.transformer.new_cache()
    model.transformer.forward(Pass.causal(held, 0, model.transformer.device), cold)
    cold.advance(len(held))
    torch.testing.assert_close(request.session.cache.snapshot(), cold.snapshot(), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("policy", ["parallel", "confident:canvas=8", "parallel:draft=seeded,remask=parser+confidence"])
def test_an_unverified_canvas_is_penalised_by_what_stands_before_each_place(policy):
    """A penalty without bound: no token twice, but where all the likely ones are used up."""
    chosen = policy_named(f"{policy}{',' if ':' in policy else ':'}repetition=10,threshold=1", SPEC)
    text = decode(tiny_model(5), chosen, 12).written
    plain = decode(tiny_model(5), policy_named(policy, SPEC), 12).written
    assert text != plain
    assert len(text) - len(set(text)) <= len(plain) - len(set(plain))


def test_off_is_off():
    free = decode(tiny_model(1), POLICIES["single_pass"])
    off = decode(tiny_model(1), policy_named("single_pass:repetition=1,contrast=0", SPEC))
    assert (off.written, off.forwards, off.contrast) == (free.written, free.forwards, None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("parallel:contrast=0.5", "decides token after token, so the policy's verify is 'exact'"),
        ("bounded:contrast=0.5", "verify is 'exact'"),
        ("search:repetition=2", "compares plain scores"),
        ("default:repetition=0.5", "repetition is 1 to 10, not 0.5"),
        ("default:contrast=1.5", "contrast is 0 to 1, not 1.5"),
        ("default:contrasted=1", "contrasted is 2 to 16 tokens, not 1"),
    ],
)
def test_what_cannot_be_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        policy_named(text, SPEC)


def test_candidates_of_a_penalised_policy_are_drawn_not_searched():
    policy = Policy(name="x", draft="none", repetition=1.2, verify=Verify.EXACT)
    assert searching(policy, 3, SPEC) is policy
    ask = CompletionRequest(
        document="a", language="python", prefix="x = ", policy="autoregressive:contrast=0.4", candidates=2, max_tokens=6
    )
    Engine(tiny_model(2)).complete(ask)
