"""What holds for every regime, policy, prompt and moment: no mark is written, it ends, and sessions are never wrong."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import SPEC, random_weights, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import Commit, Policy, Remask, Verify
from remask.engine.decode.remask import Falling, Remasker
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.models.model import Model
from remask.engine.models.spec import Layout, Regime
from remask.engine.models.transformer import Transformer
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
BLOCK = 4
CHAT = replace(SPEC, block_size=BLOCK, verifies=False, layout=Layout.CHAT)
SPECS = {
    "causal": SPEC,
    "strict": replace(CHAT, regime=Regime.STRICT_CAUSAL, shift=0),
    "blocks": replace(CHAT, regime=Regime.BLOCK_CAUSAL, shift=0),
    "shifted": replace(CHAT, regime=Regime.BLOCK_CAUSAL, shift=1, sub_block=2),
    "both": replace(CHAT, regime=Regime.BIDIRECTIONAL, shift=1),
}
SEEDS = 3
WEIGHTS = [random_weights(seed=seed) for seed in range(SEEDS)]
DRAFTS = ("none", "canvas", "lookup", "single_pass", "lookup+single_pass", "lookup+canvas", "seeded")

tokens = st.lists(st.integers(0, 255), min_size=1, max_size=3 * BLOCK + 1)
unverified = st.builds(
    Policy,
    name=st.just("drawn"),
    verify=st.just(Verify.OFF),
    canvas=st.integers(1, 9),
    threshold=st.floats(0, 1),
    passes=st.integers(0, 12),
    commit=st.sampled_from(Commit),
    bound=st.floats(0, 6),
    low=st.floats(0, 1),
    penalty=st.floats(0, 1),
    window=st.integers(0, 6),
    stable=st.integers(0, 2),
    calm=st.floats(0, 100),
    repetition=st.sampled_from([1.0, 1.3]),
    remask=st.sampled_from(["off", "parser", "confidence", "parser+confidence"]),
    doubt=st.floats(0, 1),
    fall=st.floats(0, 1),
)
verified = st.builds(
    Policy,
    name=st.just("drawn"),
    verify=st.sampled_from([Verify.EXACT, Verify.BOUNDED]),
    draft=st.sampled_from(DRAFTS),
    canvas=st.integers(2, 9),
    ratio=st.floats(0.01, 1),
    lookup=st.integers(1, 6),
)
searches = st.builds(
    Policy,
    name=st.just("drawn"),
    draft=st.sampled_from(["none", "lookup"]),
    branches=st.integers(2, 5),
    steps=st.integers(1, 3),
    explore=st.floats(0, 4),
    margin=st.sampled_from([0.0, 2.0, 1000.0]),
    settle=st.integers(0, 1),
)


@st.composite
def cases(draw):
    """A regime, a model of it and a policy that it can follow."""
    name = draw(st.sampled_from(sorted(SPECS)))
    kinds = unverified | verified | searches if name == "causal" else unverified
    return model_of(name, draw(st.integers(0, SEEDS - 1))), draw(kinds)


def model_of(name, seed):
    spec = SPECS[name]
    return Model(spec, tiny_model().tokenizer, Transformer(spec.shape, WEIGHTS[seed]), f"{name}-{seed}")


def run(model, policy, prompt, most, session=None, **more):
    budget = Budget(most, **{k: more.pop(k) for k in ("cancelled",) if k in more})
    request = Request(session or Session(model.transformer.new_cache()), policy, budget, **more)
    if Remask.CONFIDENCE in policy.judges and not policy.verifies:
        request.remasker = Remasker(None, model.decode, Falling(policy.doubt, policy.fall))
    after = [10, 20, 30] if model.spec.regime is Regime.BIDIRECTIONAL else []
    decoder = Decoder(model)
    counts = decoder.prepare(request, Prompt(prompt, after))
    _, reason = decoder.decode(request, OPEN)
    return request, reason, request.forwards - counts.passes


def most_passes(policy, most):
    """More than any of them may take for so many tokens."""
    looked_again = 40 * policy.canvas + 40  # each position is taken back a bounded number of times
    texts = policy.branches * policy.steps + 1
    return texts * (most + 2) * (policy.passes + 4) + (looked_again * (most + 1) if policy.judges else 0)


@settings(max_examples=150)
@given(cases(), tokens, st.integers(1, 14), st.sampled_from([0.0, 0.8]), st.integers(0, 99))
def test_it_ends_within_its_budget_and_writes_no_mark(case, prompt, most, temperature, seed):
    model, policy = case
    request, reason, passes = run(model, policy, prompt, most, temperature=temperature, seed=seed)
    assert not set(request.written) & {*model.spec.never, *model.spec.end_ids}
    assert len(request.written) <= most
    assert reason is Reason.END or len(request.written) == most
    assert passes <= most_passes(policy, most)
    assert request.session.cache.length == len(request.session.tokens)


@settings(max_examples=100)
@given(cases(), tokens, tokens, st.data())
def test_a_cache_hit_equals_a_cold_start_wherever_the_edit_is(case, prompt, typed, data):
    """The prompt is cut anywhere and goes on otherwise: in blocks that means at B - 1, B and B + 1, too."""
    model, policy = case
    session = Session(model.transformer.new_cache())
    run(model, policy, prompt, 6, session)
    edited = [*prompt[: data.draw(st.integers(0, len(prompt)), "kept")], *typed]
    warm, *_ = run(model, policy, edited, 8, session)
    cold, *_ = run(model, policy, edited, 8)
    assert warm.written == cold.written


@settings(max_examples=100)
@given(cases(), tokens, st.integers(0, 12))
def test_cancelled_after_any_pass_the_session_serves_the_next_request(case, prompt, after):
    model, policy = case
    session, polls = Session(model.transformer.new_cache()), iter([False] * after)
    run(model, policy, prompt, 12, session, cancelled=lambda: next(polls, True))
    assert session.cache.length == len(session.tokens)
    again, *_ = run(model, policy, prompt, 8, session)
    assert again.written == run(model, policy, prompt, 8)[0].written


class BrokenPassError(Exception):
    """What a pass may raise."""


@settings(max_examples=100)
@given(cases(), tokens, st.integers(0, 8))
def test_an_error_in_any_pass_leaves_a_session_that_serves_the_next_request(case, prompt, after):
    """In the middle of a block as well: some of a canvas is resolved by then."""
    model, policy = case
    session, left = Session(model.transformer.new_cache()), iter([True] * after)
    forward = model.transformer.forward

    def failing(*args, **values):
        if not next(left, False):
            raise BrokenPassError
        return forward(*args, **values)

    model.transformer.forward = failing
    try:
        run(model, policy, prompt, 12, session)
    except BrokenPassError:
        pass
    finally:
        model.transformer.forward = forward
    assert session.cache.length == len(session.tokens)
    again, *_ = run(model, policy, prompt, 8, session)
    assert again.written == run(model, policy, prompt, 8)[0].written


@settings(max_examples=60)
@given(cases(), tokens, tokens, st.lists(st.booleans(), min_size=3, max_size=6))
def test_two_files_in_turn_are_as_if_each_were_alone(case, first, second, turns):
    model, policy = case
    prompts, sessions = (first, second), [Session(model.transformer.new_cache()) for _ in range(2)]
    alone = [run(model, policy, prompt, 6)[0].written for prompt in prompts]
    for which in turns:
        assert run(model, policy, prompts[which], 6, sessions[which])[0].written == alone[which]


@pytest.mark.parametrize("kept", [2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1])
@pytest.mark.parametrize("name", sorted(SPECS))
@torch.inference_mode()
def test_how_much_of_a_session_an_edit_leaves(name, kept):
    """Causal: all before the edit; blocks: whole ones before it; both ways: nothing."""
    model = model_of(name, 0)
    session, decoder = Session(model.transformer.new_cache()), Decoder(model)
    policy = Policy(name="x", canvas=BLOCK, verify=Verify.OFF)
    prompt = list(range(4 * BLOCK))
    decoder.prepare(Request(session, policy, Budget(1)), Prompt(prompt))
    counts = decoder.prepare(Request(session, policy, Budget(1)), Prompt([*prompt[:kept], 99, 98, 97, 96, 95]))
    assert counts.cached == {"both": 0, "blocks": kept // BLOCK * BLOCK, "shifted": kept // BLOCK * BLOCK}.get(
        name, kept
    )
