"""A draft from outside: exact policies write the same text with and without it, others begin with it and judge it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import MASK, scripted_model, tiny_model

from remask.contract.errors import InputError
from remask.contract.messages import MAX_DRAFT_CHARACTERS, CompletionRequest
from remask.engine.api import Engine
from remask.engine.prompt import build_prompt

PREFIX = "def f(x):\n    "
TEXT = "total = x + x\n    return total\n"
EXACT = ["autoregressive", "default", "single_pass", "lookup", "lookup_single_pass", "auto", "default:draft=seeded"]


def ask(**values):
    return CompletionRequest(document="a", language="python", prefix=PREFIX, deadline_ms=60_000, **values)


@pytest.fixture(scope="module")
def random_text():
    """What a random model writes, unjudged."""
    return {policy: random_engine().complete(ask(policy=policy, max_tokens=24)) for policy in EXACT}


def random_engine():
    return Engine(tiny_model(7))


@pytest.mark.parametrize("policy", EXACT)
@settings(max_examples=8, deadline=None)
@given(draft=st.text(max_size=30) | st.integers(0, 20).map(lambda n: TEXT[:n]), cut=st.integers(0, 24))
def test_whatever_the_draft_an_exact_policy_writes_the_same(random_text, policy, draft, cut):
    plain = random_text[policy]
    for text in (draft, plain.text[:cut], plain.text[:cut] + draft):
        drafted = random_engine().complete(ask(policy=policy, max_tokens=24, draft=text))
        assert (drafted.text, drafted.reason, drafted.tokens) == (plain.text, plain.reason, plain.tokens)


def scripted(policy, draft, **faults):
    length = len(build_prompt(tiny_model(), PREFIX, "", "python"))
    engine = Engine(scripted_model(TEXT, length, **faults))
    return engine.complete(ask(policy=policy, draft=draft, extent="block", max_tokens=60))


@pytest.mark.parametrize("policy", ["lookup", "lookup_single_pass", "default:draft=seeded,canvas=8"])
def test_a_right_draft_saves_passes(policy):
    plain, drafted = scripted(policy, ""), scripted(policy, TEXT)
    assert drafted.text == plain.text
    assert drafted.forwards <= 0.5 * plain.forwards


@pytest.mark.parametrize("draft", [TEXT, TEXT.replace("x + x", "x * x"), TEXT[:9], "none of it at all", ""])
def test_an_unverified_canvas_begins_with_the_draft_and_ends_with_the_models_text(draft):
    result = scripted("parallel:draft=seeded", draft)
    assert result.text == scripted("parallel", "").text
    assert chr(MASK) not in result.text


def test_a_right_draft_is_looked_at_once_a_canvas():
    """One pass finds nothing to doubt, one writes KV; where the model is not sure, masks take one pass a position."""
    unsure = frozenset(range(len(TEXT)))
    policy = "parallel:draft=seeded,doubt=0.005"
    plain, drafted = scripted("parallel", "", doubts=unsure), scripted(policy, TEXT, doubts=unsure)
    assert drafted.text == plain.text
    assert drafted.forwards < 0.7 * plain.forwards


def test_a_draft_has_bounds():
    with pytest.raises(InputError, match=f"draft has more than {MAX_DRAFT_CHARACTERS}"):
        ask(draft="x" * (MAX_DRAFT_CHARACTERS + 1))
    with pytest.raises(InputError, match="text in 'draft'"):
        ask(draft=None)
