"""Drafts from every source: the verified text is greedy decoding's, whatever they propose and however it ends."""

import random
import time

import pytest
import torch
from reference import reference_greedy, reference_logits
from tiny import END, MASK, PREFIX, SHAPE, SUFFIX, random_weights, scripted_model, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.drafters import Draft, Drafter, LookupDrafter, drafters_for
from remask.engine.decode.lookup import LookupIndex
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import Plan, Policy
from remask.engine.decode.regimes import base
from remask.engine.decode.regimes.base import masked_rows
from remask.engine.decode.regimes.causal import tailed_mask
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.prompt import Prompt
from remask.engine.session import Session

NEVER = [MASK, PREFIX, SUFFIX]
OPEN = StopRules(Reason.BLOCK, "", lambda _: None)


def policy(draft, canvas=4, **more):
    return Policy(name="test", draft=draft, canvas=canvas, **more)


EVERY = [
    *(policy("single_pass", canvas) for canvas in (2, 3, 8)),
    policy("lookup", 0),
    policy("lookup", 0, lookup=1),
    policy("lookup+canvas", 3),
    policy("lookup+single_pass", 3),
    policy("lookup+single_pass", 2, lookup=20),
    policy("single_pass+canvas", 3),
    policy("seeded", 4, passes=2),
    policy("lookup+single_pass+canvas", 8, plan=Plan.MEASURED),
]


def prompt_of(seed, length=20):
    """Repeats itself, as code does, so that something can be looked up."""
    row = [(seed * 31 + 7 * i * i) % 11 + 90 for i in range(length)]
    return [SUFFIX, *row[: length // 2], PREFIX, *row]


def run(model, prompt, chosen, limit=24, temperature=0.0, **budget):
    request = Request(Session(model.transformer.new_cache()), chosen, Budget(10_000), temperature=temperature, seed=3)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt))
    request.forwards, request.budget = 0, Budget(limit, **budget)
    return decoder.decode(request, OPEN), request


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.canvas}-{p.lookup}")
@pytest.mark.parametrize("seed", range(4))
def test_every_source_writes_what_one_token_a_pass_writes(seed, chosen):
    _, request = run(tiny_model(seed), prompt_of(seed), chosen, 40)
    assert request.written == reference_greedy(random_weights(seed=seed), SHAPE, prompt_of(seed), 40, END, NEVER)
    assert request.session.tokens == [*prompt_of(seed), *request.written][: len(request.session.tokens)]


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.canvas}-{p.lookup}")
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
def test_the_budget_holds_around_a_draft(limit, chosen):
    (_, reason), request = run(tiny_model(1), prompt_of(1), chosen, limit)
    assert request.written == reference_greedy(random_weights(seed=1), SHAPE, prompt_of(1), limit, END, NEVER)
    assert (len(request.written), reason) == (limit, Reason.BUDGET)


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.canvas}-{p.lookup}")
def test_a_drawn_text_is_the_same_whatever_drafts_it(chosen):
    texts = [run(tiny_model(2), prompt_of(2), p, 30, temperature=0.9)[1].written for p in (policy("none", 0), chosen)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.canvas}-{p.lookup}")
@pytest.mark.parametrize("after", [0, 1, 3])
def test_cancelled_between_passes_leaves_a_usable_session(after, chosen):
    polls = iter([False] * after + [True] * 99)
    model = tiny_model(2)
    (_, reason), request = run(model, prompt_of(2), chosen, 1000, cancelled=lambda: next(polls))
    assert reason is Reason.CANCELLED
    again = Request(request.session, chosen, Budget(24))
    decoder = Decoder(model)
    decoder.prepare(again, Prompt(prompt_of(2)))
    decoder.decode(again, OPEN)
    assert again.written == reference_greedy(random_weights(seed=2), SHAPE, prompt_of(2), 24, END, NEVER)


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.canvas}-{p.lookup}")
def test_a_deadline_in_the_past_runs_no_pass(chosen):
    (text, reason), request = run(tiny_model(2), prompt_of(2), chosen, deadline=time.monotonic() - 1)
    assert (text, reason, request.forwards) == ("", Reason.DEADLINE, 0)


TEXT = "return self.x\n"
CODE = [PREFIX, *b"def f(self):\n    "]


@pytest.mark.parametrize(("canvas", "passes"), [(2, 1 + 7), (4, 1 + 4), (8, 1 + 2), (15, 1 + 1)])
def test_a_single_pass_verifies_and_drafts(canvas, passes):
    """14 tokens and the end token: the first pass writes one, each later one a whole draft and its own token."""
    (text, reason), request = run(scripted_model(TEXT, len(CODE)), CODE, policy("single_pass", canvas))
    assert (text, reason, request.forwards, request.extra) == (TEXT, Reason.END, passes, 0.0)


def test_a_text_that_repeats_itself_is_looked_up():
    text = "total = total + 1; total = total + 1; total = total + 1;"
    (wrote, _), request = run(scripted_model(text, len(CODE)), CODE, policy("lookup", 0), 100)
    assert wrote == text
    assert request.forwards < 0.6 * len(text)


def test_a_seeded_canvas_keeps_what_is_looked_up_and_predicts_the_rest():
    text = "ab = cd; ab = cd; ab"
    model = scripted_model(text, 1 + len(text) - 4, doubts=frozenset(range(99)))
    request = Request(Session(model.transformer.new_cache()), policy("seeded", 8), Budget(24))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt([PREFIX, *text[:-4].encode()]))
    (drafter,) = drafters_for(request, decoder._reader, lambda _: False)
    assert bytes(drafter.propose(request, 3).tokens) == b"; a"  # found, not predicted
    assert request.forwards == 1
    assert len(drafter.propose(request, 8).tokens) == 8


def test_branch_scores_are_those_of_a_canvas_behind_the_accepted_tokens():
    """Against the naive transformer: every branch as a row of its own, with nothing of the others in it."""
    model, weights, prompt, draft, masks = tiny_model(4), random_weights(seed=4), prompt_of(4), [65, 66, 67], 3
    request = Request(Session(model.transformer.new_cache()), policy("single_pass"), Budget(24))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt))
    with torch.inference_mode():
        step = decoder._reader.reading(request, draft, (masks, 0, masks, masks))
        hidden = decoder._reader.forward(request, step)
        behind = hidden[1 + len(draft) :][masked_rows((masks, 0, masks, masks))]
        for j, rows in zip((0, 2, 3), behind.split(masks), strict=True):
            known = [*prompt, *draft[:j]]
            visible = torch.ones(len(known) + masks, len(known) + masks, dtype=torch.bool).tril()
            visible[len(known) - 1 :] = True
            want = reference_logits(weights, SHAPE, known + [MASK] * masks, visible)[len(known) :]
            torch.testing.assert_close(model.transformer.logits(rows), want, atol=2e-4, rtol=1e-3)


def test_branches_do_not_see_each_other_nor_the_rows_behind_their_place():
    mask = tailed_mask(3, (2, 0, 1))
    assert mask.tolist() == [
        [bool(int(c)) for c in row]
        for row in ("10000000", "11000000", "11100000", "00011100", "00011100", "00011100", "11000011", "11000011")
    ]


class Recording(Drafter):
    """What a draft head would see."""

    def __init__(self):
        self.saw = []

    def propose(self, request, size):
        if request.written:  # before that it is what the prompt's last pass left
            self.saw.append((request.session.tokens[-len(request.hidden) :], request.hidden, request.pending))
        return Draft([65, 66][:size], 0.25)


def test_a_draft_head_gets_the_states_of_what_was_kept(monkeypatch):
    """The last of them predicts the pending token; its own cost is counted beside the passes."""
    head, model = Recording(), tiny_model(5)
    monkeypatch.setattr("remask.engine.decode.loop.drafters_for", lambda *_: [Drafter(), head])
    _, request = run(model, prompt_of(5), policy("none", 0), 12)
    assert request.written == reference_greedy(random_weights(seed=5), SHAPE, prompt_of(5), 12, END, NEVER)
    assert request.extra == 0.25 * request.forwards
    assert len(head.saw) == request.forwards - 1
    for kept, hidden, pending in head.saw:
        assert 1 <= len(hidden) == len(kept) <= 3
        scores = model.transformer.logits(hidden[-1:]).clone()
        scores[:, NEVER] = -torch.inf
        assert scores.argmax(-1).tolist() == pending


def naive_lookup(row, size, barriers, shortest):
    """Scan the whole row for the newest earlier place of its longest end."""
    for length in range(3, shortest - 1, -1):
        for place in range(len(row) - 1, length - 1, -1):
            if len(row) >= length and row[place - length : place] == row[-length:]:
                behind = row[place : place + min(size, {1: 2, 2: 4, 3: size}[length])]
                return behind[: next((i for i, t in enumerate(behind) if t in barriers), len(behind))]
    return []


@pytest.mark.parametrize("shortest", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_index_finds_what_a_scan_finds(seed, shortest):
    draw = random.Random(seed)
    index, row = LookupIndex({9}), []
    for _ in range(60):
        more = [draw.choice([1, 2, 3, 4, 9]) for _ in range(draw.randint(0, 4))]
        index.extend(more)
        row += more
        size = draw.randint(1, 8)
        assert index.after(size, shortest)[0] == naive_lookup(row, size, {9}, shortest)
        assert len(index) == len(row)


def prepared(prompt, guess=()):
    model = tiny_model(1)
    request = Request(Session(model.transformer.new_cache()), policy("lookup", 0), Budget(24), guess=list(guess))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt))
    return LookupDrafter(decoder._reader, request.guess, shortest=2), request


def test_a_lookup_knows_the_prompt_the_text_and_the_newest_token():
    drafter, request = prepared([SUFFIX, 1, 2, 3, PREFIX, 4, 1, 2])
    assert drafter.propose(request, 8).tokens == [3]  # and not the mark behind it
    request.session.tokens.append(request.pending[0])
    request.pending = [3]
    assert drafter.propose(request, 8).tokens == []  # what follows is the mark
    request.session.tokens += [3, 4]
    request.pending = [1]
    assert drafter.propose(request, 2).tokens == [2, 3]


def test_a_guess_is_drafted_while_it_holds_and_looked_up_afterwards():
    drafter, request = prepared([PREFIX, 4, 1, 2], guess=[50, 51, 52, 53, 54])
    assert drafter.propose(request, 3).tokens == [50, 51, 52]
    request.session.tokens += [2, 50]
    request.pending, request.written = [51], [50, 51]
    assert drafter.propose(request, 3).tokens == [52, 53, 54]
    request.session.tokens += [51, 7, 52]
    request.pending, request.written = [53], [50, 51, 7, 52, 53]
    assert drafter.propose(request, 3).tokens == [54]


@pytest.mark.parametrize("right", [0, 5, 24])
def test_a_guess_costs_no_token_where_it_is_wrong(right):
    want = reference_greedy(random_weights(seed=1), SHAPE, prompt_of(1), 24, END, NEVER)
    guess = [*want[:right], *[(t + 1) % 256 for t in want[right:]]]
    model = tiny_model(1)
    request = Request(Session(model.transformer.new_cache()), policy("lookup", 0), Budget(24), guess=guess)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt_of(1)))
    request.forwards = 0
    decoder.decode(request, OPEN)
    assert request.written == want
    assert right < 24 or request.forwards == 3  # eight drafted tokens a pass, and its own one


@pytest.mark.parametrize("chosen", EVERY, ids=lambda p: f"{p.draft}-{p.canvas}-{p.lookup}")
def test_the_best_tokens_alone_say_what_all_scores_say(chosen, monkeypatch):
    model, prompt = tiny_model(5), prompt_of(5)
    _, quick = run(model, prompt, chosen)
    monkeypatch.setattr(base, "_greedy", lambda _: False)
    _, thorough = run(model, prompt, chosen)
    assert quick.written == thorough.written
    assert quick.sureness == pytest.approx(thorough.sureness, abs=1e-4)
