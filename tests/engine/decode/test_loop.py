"""The decode loop: equal to the naive reference under exact verification, whatever the canvas gets wrong."""

import time

import pytest
from reference import reference_greedy
from tiny import END, MASK, PREFIX, SHAPE, SUFFIX, random_weights, scripted_model, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import POLICIES
from remask.engine.decode.policy import Policy, Verify
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules, first_line_end
from remask.engine.prompt import Prompt
from remask.engine.session import Session

NEVER = [MASK, PREFIX, SUFFIX]


def never_ends(_draft):
    return None


OPEN = StopRules(Reason.BLOCK, "", never_ends)


def exact(canvas=4, threshold=0.3, passes=1):
    return Policy(name="test", canvas=canvas, threshold=threshold, passes=passes, verify=Verify.EXACT)


def request_for(model, prompt, policy, **budget):
    session = Session(model.transformer.new_cache())
    Decoder(model).prepare(Request(session, policy, Budget(1)), Prompt(prompt))
    request = Request(session, policy, Budget(**{"max_tokens": 24} | budget))
    request.pending = prompt[-1:]
    return request


def prompt_of(seed, length=20):
    return [PREFIX, *[(seed * 31 + 7 * i * i) % 256 for i in range(length)]]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "policy",
    [POLICIES["default"], POLICIES["autoregressive"], exact(1), exact(7, 0.0), exact(8, 0.9, 3), exact(16, 1.0, 16)],
)
def test_exact_verification_equals_the_naive_reference(seed, policy):
    model, prompt = tiny_model(seed), prompt_of(seed)
    request = request_for(model, prompt, policy)
    Decoder(model).decode(request, OPEN)
    want = reference_greedy(random_weights(seed=seed), SHAPE, prompt, 24, END, NEVER)
    assert request.written == want


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("policy", [exact(8, 0.0), POLICIES["single_pass"], POLICIES["lookup"], POLICIES["auto"]])
def test_a_texts_score_is_of_its_own_tokens_however_far_a_pass_reads_behind_its_end(seed, policy):
    rules = StopRules(Reason.LINE, "", lambda text: 5 if len(text) >= 5 else None)
    requests = [request_for(tiny_model(seed), prompt_of(seed), one) for one in (POLICIES["autoregressive"], policy)]
    for request in requests:
        _, reason = Decoder(tiny_model(seed)).decode(request, rules)
        assert len(request.sureness) == len(request.written) + (reason is Reason.END)
    assert requests[1].score == pytest.approx(requests[0].score, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", POLICIES)
def test_marks_are_never_written(seed, name):
    model = tiny_model(seed)
    request = request_for(model, prompt_of(seed), POLICIES[name])
    Decoder(model).decode(request, OPEN)
    assert not set(request.written) & set(NEVER)


@pytest.mark.parametrize("name", POLICIES)
def test_session_holds_what_was_read_and_serves_the_next_request(name):
    model, prompt = tiny_model(1), prompt_of(1)
    request = request_for(model, prompt, POLICIES[name])
    Decoder(model).decode(request, OPEN)
    session = request.session
    assert session.tokens == [*prompt, *request.written][: len(session.tokens)]
    assert session.cache.length == len(session.tokens)
    again = Request(session, POLICIES[name], Budget(24))
    Decoder(model).prepare(again, Prompt(prompt))
    Decoder(model).decode(again, OPEN)
    assert again.written == request.written


TEXT = "return self.x\n"
PROMPT = [PREFIX, *b"def f(self):\n    "]


@pytest.mark.parametrize("faults", [{}, {"canvas_errors": frozenset({0, 3, 4, 9})}, {"doubts": frozenset({1, 2, 7})}])
@pytest.mark.parametrize("policy", [POLICIES["default"], exact(8, 0.9, 8), POLICIES["autoregressive"]])
def test_verification_mends_what_the_canvas_gets_wrong(policy, faults):
    model = scripted_model(TEXT, len(PROMPT), **faults)
    text, reason = Decoder(model).decode(request_for(model, PROMPT, policy), OPEN)
    assert (text, reason) == (TEXT, Reason.END)


def test_a_good_canvas_takes_fewer_passes_than_tokens():
    model = scripted_model(TEXT, len(PROMPT))
    request = request_for(model, PROMPT, exact(8))
    Decoder(model).decode(request, OPEN)
    assert request.forwards == 4  # 14 tokens and the end token: twice a draft of 8, verified with one more token


def test_without_verification_errors_stay():
    model = scripted_model(TEXT, len(PROMPT), canvas_errors=frozenset({0}))
    text, _ = Decoder(model).decode(request_for(model, PROMPT, POLICIES["parallel"]), OPEN)
    assert text == "s" + TEXT[1:]


def test_unverified_canvas_is_denoised_until_it_is_resolved():
    model = scripted_model(TEXT, len(PROMPT), doubts=frozenset({1, 2}))
    request = request_for(model, PROMPT, POLICIES["parallel"])
    text, _ = Decoder(model).decode(request, OPEN)
    assert text == TEXT
    canvases = [size for kind, size in model.transformer.passes if kind == "canvas"]
    assert len(canvases) == 2 + 1 + 1  # what is doubtful costs a pass each; the second canvas has no doubts


@pytest.mark.parametrize(("text", "rules"), [("ab", OPEN), ("ab\ncdefgh", StopRules(Reason.LINE, "", first_line_end))])
def test_an_end_in_the_resolved_start_does_not_wait_for_the_masks_behind_it(text, rules):
    """The end token or the line's end is known after one pass; the doubtful rest would cost a pass each."""
    model = scripted_model(text, len(PROMPT), doubts=frozenset({4, 5, 6, 7}))
    request = request_for(model, PROMPT, POLICIES["parallel"])
    assert Decoder(model).decode(request, rules)[0] == "ab"
    assert request.forwards == 1


def test_stops_at_the_first_line():
    model = scripted_model(TEXT + "more\n", len(PROMPT))
    rules = StopRules(Reason.LINE, "", first_line_end)
    assert Decoder(model).decode(request_for(model, PROMPT, POLICIES["default"]), rules) == (
        "return self.x",
        Reason.LINE,
    )


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("limit", [1, 2, 4, 5, 8, 9])
def test_budget_is_exact(name, limit):
    model = scripted_model(TEXT, len(PROMPT))
    request = request_for(model, PROMPT, POLICIES[name], max_tokens=limit)
    assert Decoder(model).decode(request, OPEN) == (TEXT[:limit], Reason.BUDGET)
    assert len(request.written) == limit


def test_deadline_in_the_past_runs_no_pass():
    model = scripted_model(TEXT, len(PROMPT))
    request = request_for(model, PROMPT, POLICIES["default"], deadline=time.monotonic() - 1)
    assert Decoder(model).decode(request, OPEN) == ("", Reason.DEADLINE)
    assert request.forwards == 0


@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize("name", POLICIES)
def test_cancelled_between_any_passes_leaves_a_usable_session(name, after):
    model, prompt = tiny_model(2), prompt_of(2)
    polls = iter([False] * after + [True] * 99)
    request = request_for(model, prompt, POLICIES[name], max_tokens=1000, cancelled=lambda: next(polls))
    _, reason = Decoder(model).decode(request, OPEN)
    assert reason is Reason.CANCELLED
    again = Request(request.session, POLICIES["default"], Budget(24))
    Decoder(model).prepare(again, Prompt(prompt))
    Decoder(model).decode(again, OPEN)
    assert again.written == reference_greedy(random_weights(seed=2), SHAPE, prompt, 24, END, NEVER)
