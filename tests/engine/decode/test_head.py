"""Drafts of a draft head: the text stays greedy decoding's, its time is counted, and it may be missing."""

from dataclasses import replace

import pytest
import torch
from reference import reference_greedy
from tiny import END, MASK, PREFIX, SHAPE, SPEC, SUFFIX, random_weights, scripted_model, tiny_model

from remask.contract.errors import InputError
from remask.contract.messages import Reason
from remask.engine.decode.costs import draft_share
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named
from remask.engine.decode.policy import Plan, Policy
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.models.draft_head import shapes
from remask.engine.models.drafting import DraftHead, Guess
from remask.engine.prompt import Prompt
from remask.engine.session import Session

NEVER = [MASK, PREFIX, SUFFIX]
OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
TEXT = "return self.x\n"
CODE = [PREFIX, *b"def f(self):\n    "]


def policy(draft, **more):
    return Policy(name="test", draft=draft, **{"sure": 0.0, "other": 0.0, **more})


EVERY = [
    policy("head"),
    policy("head", head=1),
    policy("head", sure=0.5, other=1.0),
    policy("lookup+head"),
    policy("head+single_pass", canvas=3),
    policy("head+single_pass", canvas=3, other=1.0),
    policy("lookup+head+single_pass", canvas=2, head=2),
    policy("head+canvas", canvas=3),
    policy("lookup+head+single_pass+canvas", canvas=8, plan=Plan.MEASURED),
]


def prompt_of(seed, length=20):
    """Repeats itself, as code does, so that something can be looked up."""
    row = [(seed * 31 + 7 * i * i) % 11 + 90 for i in range(length)]
    return [SUFFIX, *row[: length // 2], PREFIX, *row]


def with_head(seed):
    """A tiny model, and a head that is right now and then: it scores the state as the model does."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {n: torch.randn(s, generator=generator) * 0.02 for n, s in shapes(SHAPE.width, 8, 250).items()}
    tensors |= {"tokens": torch.arange(250), "norm": torch.ones(SHAPE.width)}
    model = tiny_model(seed)
    return replace(model, draft_head=DraftHead(tensors, random_weights(seed=seed)))


def run(model, prompt, chosen, limit=24, temperature=0.0, **budget):
    request = Request(Session(model.transformer.new_cache()), chosen, Budget(10_000), temperature=temperature, seed=3)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt))
    request.forwards, request.budget = 0, Budget(limit, **budget)
    return decoder.decode(request, OPEN), request


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.head}-{p.sure}-{p.other}")
@pytest.mark.parametrize("seed", range(4))
def test_it_writes_what_one_token_a_pass_writes(seed, chosen):
    _, request = run(with_head(seed), prompt_of(seed), chosen, 40)
    assert request.written == reference_greedy(random_weights(seed=seed), SHAPE, prompt_of(seed), 40, END, NEVER)
    assert request.session.tokens == [*prompt_of(seed), *request.written][: len(request.session.tokens)]


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.head}-{p.sure}-{p.other}")
def test_a_drawn_text_is_the_same_whatever_drafts_it(chosen):
    texts = [run(with_head(2), prompt_of(2), p, 30, temperature=0.9)[1].written for p in (policy("none"), chosen)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.head}-{p.sure}-{p.other}")
@pytest.mark.parametrize("limit", [1, 2, 3, 9])
def test_the_budget_holds_around_a_draft(limit, chosen):
    (_, reason), request = run(with_head(1), prompt_of(1), chosen, limit)
    assert request.written == reference_greedy(random_weights(seed=1), SHAPE, prompt_of(1), limit, END, NEVER)
    assert (len(request.written), reason) == (limit, Reason.BUDGET)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_cancelled_between_passes_leaves_a_usable_session(after):
    polls = iter([False] * after + [True] * 99)
    model, chosen = with_head(2), policy("lookup+head")
    (_, reason), request = run(model, prompt_of(2), chosen, 1000, cancelled=lambda: next(polls))
    assert reason is Reason.CANCELLED
    again = Request(request.session, chosen, Budget(24))
    decoder = Decoder(model)
    decoder.prepare(again, Prompt(prompt_of(2)))
    decoder.decode(again, OPEN)
    assert again.written == reference_greedy(random_weights(seed=2), SHAPE, prompt_of(2), 24, END, NEVER)


class Knowing:
    """A head that knows the text; at `wrong` places its first choice is not right, but its second one."""

    def __init__(self, text, start, wrong=()):
        self._text, self._start, self._wrong = [*text.encode(), END], start, wrong

    def guess(self, hidden, token, size, sure=0.0, other=1.0):
        at = int(hidden[0]) + 1  # a scripted row's state is the offset that it predicts
        right = self._text[at : at + size]
        tokens = [t + 1 if at + i in self._wrong else t for i, t in enumerate(right)]
        others = [(i, t, 0.1) for i, t in enumerate(right) if at + i in self._wrong and other <= 0.1]
        return Guess(tokens, [0.9] * len(tokens), others)


@pytest.mark.parametrize(("head", "passes"), [(1, 8), (4, 3), (15, 1)])
def test_a_right_draft_is_taken_whole_from_the_first_pass_on(head, passes):
    model = replace(scripted_model(TEXT, len(CODE)), draft_head=Knowing(TEXT, len(CODE)))
    (text, reason), request = run(model, CODE, policy("head", head=head))
    assert (text, reason, request.forwards) == (TEXT, Reason.END, passes)


def test_a_second_choice_is_read_beside_the_first_and_taken_where_it_is_right():
    """Every first choice is wrong: alone they bring nothing, and the second one brings the token behind it, too."""
    wrong = Knowing(TEXT, len(CODE), wrong=set(range(20)))
    model = replace(scripted_model(TEXT, len(CODE)), draft_head=wrong)
    for other, passes in ((1.0, 15), (0.1, 8)):
        (text, _), request = run(model, CODE, policy("head", head=2, other=other))
        assert (text, request.forwards) == (TEXT, passes)


def test_its_time_is_counted_beside_the_passes(monkeypatch):
    monkeypatch.setattr("remask.engine.decode.loop.draft_share", lambda _: 0.25)
    model = replace(scripted_model(TEXT, len(CODE)), draft_head=Knowing(TEXT, len(CODE)))
    _, request = run(model, CODE, policy("head", head=4))
    assert request.extra == 0.25 * 4 * request.forwards
    assert draft_share(tiny_model()) == 0.0
    assert 0.0 < draft_share(with_head(0)) < 100.0


def test_what_was_known_before_has_no_state_and_is_read_without_a_draft():
    model = with_head(3)
    request = Request(Session(model.transformer.new_cache()), policy("head"), Budget(12))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt_of(3)))
    assert request.hidden.shape == (1, SHAPE.width)
    decoder.prepare(request, Prompt(prompt_of(3)))
    assert request.hidden is None
    decoder.decode(request, OPEN)
    assert request.written == reference_greedy(random_weights(seed=3), SHAPE, prompt_of(3), 12, END, NEVER)


def test_a_policy_that_needs_a_head_is_refused_by_name_where_there_is_none():
    assert policy_named("lookup_head", replace(SPEC, draft_head=True)).name == "lookup_head"
    assert policy_named("default", replace(SPEC, policy="lookup_head")).name == "lookup_head"
    with pytest.raises(InputError, match="draft head"):
        policy_named("lookup_head", SPEC)


@pytest.mark.parametrize("name", ["auto", "default"])
def test_other_sources_do_without_a_head(name):
    chosen = policy_named(name, replace(SPEC, policy="lookup_head"))
    _, request = run(tiny_model(1), prompt_of(1), chosen)
    assert request.written == reference_greedy(random_weights(seed=1), SHAPE, prompt_of(1), 24, END, NEVER)
