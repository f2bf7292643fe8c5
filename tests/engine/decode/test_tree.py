"""Trees of drafts: the rows and masks against plain lists, and the verified text against one token a pass."""

import random

import pytest
import torch
from reference import reference_greedy, reference_logits
from tiny import END, MASK, PREFIX, SHAPE, SUFFIX, random_weights, scripted_model, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.drafters import Draft, Drafter
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import POLICIES
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.decode.trace import Trace
from remask.engine.decode.tree import DraftTree
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
ONE = POLICIES["autoregressive"]
TEXT = "return self.x\n"
CODE = [PREFIX, *b"def f(self):\n    "]


def prompt_of(seed, length=20):
    row = [(seed * 31 + 7 * i * i) % 11 + 90 for i in range(length)]
    return [SUFFIX, *row[: length // 2], PREFIX, *row]


def way_to(tree, row):
    rows = []
    while row >= 0:
        rows.append(row)
        row = tree.parents[row]
    return rows[::-1]


@pytest.mark.parametrize("seed", range(20))
def test_every_draft_is_a_way_through_the_tree_and_a_row_sees_its_way_only(seed):
    draw = random.Random(seed)
    known = [draw.randrange(3) for _ in range(draw.randint(1, 3))]
    drafts = [[draw.randrange(3) for _ in range(draw.randint(0, 4))] for _ in range(draw.randint(1, 5))]
    tree = DraftTree(known, drafts[0], drafts[1:])
    texts = {tuple(tree.tokens[r] for r in way_to(tree, row)) for row in range(len(tree))}
    assert {(*known, *d[:n]) for d in drafts for n in range(len(d) + 1)} <= texts
    assert len(texts) == len(tree)  # no text is read twice
    assert tree.tokens[: tree.trunk] == [*known, *drafts[0]]
    mask = tree.mask()
    for row in range(len(tree)):
        assert mask[row].nonzero()[:, 0].tolist() == sorted(way_to(tree, row))
        assert tree.depths[row] == len(way_to(tree, row)) - 1


def test_the_longest_way_is_taken_that_the_pass_would_write():
    tree = DraftTree([9], [1, 2, 3], [[1, 4, 5], [6]])
    rows = {tuple(tree.tokens[r] for r in way_to(tree, row)): row for row in range(len(tree))}
    own = [0] * len(tree)
    own[rows[(9,)]], own[rows[(9, 1)]], own[rows[(9, 1, 4)]], own[rows[(9, 1, 4, 5)]] = 1, 4, 5, 2
    assert [tree.tokens[row] for row in tree.walk(own)] == [9, 1, 4, 5]
    own[rows[(9,)]] = 7
    assert tree.walk(own) == [0]


class Guessing(Drafter):
    """Knows the text, and proposes pieces of it among nonsense, in whichever draft."""

    def __init__(self, text, start, seed):
        self._text, self._start, self._draw = text, start, random.Random(seed)

    def propose(self, request, size):
        at = len(request.session.tokens) + len(request.pending) - self._start
        drafts = [self._text[at : at + self._draw.randint(0, 4)] for _ in range(4)]
        for draft in drafts:
            if draft and self._draw.random() < 0.7:
                draft[self._draw.randrange(len(draft))] = self._draw.randrange(250)
        return Draft(drafts[0][:size], others=[d[:size] for d in drafts[1:]])


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("seed", range(6))
def test_a_tree_of_drafts_writes_what_one_token_a_pass_writes(monkeypatch, seed, temperature):
    prompt, model = prompt_of(seed), tiny_model(seed)

    def run(limit=40):
        session = Session(model.transformer.new_cache())
        request = Request(session, ONE, Budget(limit), temperature=temperature, seed=3)
        decoder = Decoder(model)
        decoder.prepare(request, Prompt(prompt))
        decoder.decode(request, OPEN)
        return request

    plain = run()
    if not temperature:
        assert plain.written == reference_greedy(
            random_weights(seed=seed), SHAPE, prompt, 40, END, [MASK, PREFIX, SUFFIX]
        )
    drafter = Guessing(plain.written, len(prompt), seed)
    monkeypatch.setattr("remask.engine.decode.loop.drafters_for", lambda *_: [drafter])
    request = run()
    assert request.written == plain.written
    assert request.forwards < plain.forwards
    assert torch.allclose(torch.tensor(request.sureness), torch.tensor(plain.sureness), atol=1e-3)
    assert request.session.tokens == [*prompt, *request.written][: len(request.session.tokens)]


@pytest.mark.parametrize("seed", range(6))
def test_a_trace_shows_the_draft_that_was_taken_whichever_it_was(monkeypatch, seed):
    prompt, model = prompt_of(seed), tiny_model(seed)

    def run(drafters, trace=None):
        monkeypatch.setattr("remask.engine.decode.loop.drafters_for", lambda *_: drafters)
        request = Request(Session(model.transformer.new_cache()), ONE, Budget(40), trace=trace)
        decoder = Decoder(model)
        decoder.prepare(request, Prompt(prompt))
        decoder.decode(request, OPEN)
        return request

    written = run([Drafter()]).written
    trace = Trace()
    trace.begin(0, model.decode)
    assert run([Guessing(written, len(prompt), seed)], trace).written == written
    assert sum(event.accepted for event in trace.events)
    for event in trace.events:
        taken = [*event.ids[: event.accepted], event.own]
        assert taken == [*written, END][event.at : event.at + len(taken)] or event.at + len(taken) > len(written)


def test_branches_behind_the_first_draft_see_nothing_of_the_others():
    """Against the naive transformer; two tokens are pending, as behind a way that left the first draft."""
    model, weights, prompt, draft, masks = tiny_model(4), random_weights(seed=4), prompt_of(4), [65, 66], 3
    request, decoder = Request(Session(model.transformer.new_cache()), ONE, Budget(24)), Decoder(model)
    decoder.prepare(request, Prompt(prompt[:-1]))
    request.pending = prompt[-2:]
    tree = DraftTree(request.pending, draft, [[70], [65, 71, 72]])
    with torch.inference_mode():
        step = tree.widened(decoder._reader.reading(request, draft, (masks, 0, masks)))
        logits = model.transformer.logits(decoder._reader.forward(request, step))
        for j, rows in zip((0, 2), logits[len(tree) :].split(masks + 1), strict=True):
            known = [*prompt, *draft[:j]]
            visible = torch.ones(len(known) + masks, len(known) + masks, dtype=torch.bool).tril()
            visible[len(known) - 1 :] = True
            want = reference_logits(weights, SHAPE, known + [MASK] * masks, visible)[len(known) - 1 :]
            torch.testing.assert_close(rows, want, atol=2e-4, rtol=1e-3)
        for row in range(1, len(tree)):
            text = [*prompt[:-2], *(tree.tokens[one] for one in way_to(tree, row))]
            causal = torch.ones(len(text), len(text), dtype=torch.bool).tril()
            want = reference_logits(weights, SHAPE, text, causal)[-1]
            torch.testing.assert_close(logits[row], want, atol=2e-4, rtol=1e-3)


def test_what_a_second_draft_brought_is_read_again_with_the_next():
    model = scripted_model(TEXT, len(CODE))
    request, decoder = Request(Session(model.transformer.new_cache()), ONE, Budget(99)), Decoder(model)
    decoder.prepare(request, Prompt(CODE))
    request.forwards = 0
    taken = decoder._reader.verify(request, [1, 2], others=[[*TEXT.encode()][:2]])
    assert bytes(taken) == TEXT.encode()[:3]
    assert bytes(request.pending) == TEXT.encode()[:3]
    assert len(request.hidden) == 3
    request.written += taken
    taken = decoder._reader.verify(request, [*TEXT.encode()][3:5])
    assert bytes(taken) == TEXT.encode()[3:6]
    assert request.session.tokens[len(CODE) :] == [*TEXT.encode()][:5]
