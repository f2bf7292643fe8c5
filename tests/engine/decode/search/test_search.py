"""The search as a whole: what it finds is what its branches would have written alone, and it ends cleanly."""

import itertools
import json
import math
from dataclasses import replace

import pytest
import torch
from tiny import END, MASK, PREFIX, SUFFIX, ByteTokenizer, Encoding, tiny_model

from remask.contract.errors import InputError
from remask.contract.messages import Reason
from remask.engine.decode.events import Searched
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named, searching
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.search import aside
from remask.engine.decode.search.branches import Branches
from remask.engine.decode.search.value import BROKEN_NATS, Aim, for_length, lines_of
from remask.engine.decode.stop import StopRules
from remask.engine.decode.trace import Record, Trace, from_json, to_json
from remask.engine.models.passes import Pass
from remask.engine.models.spec import Regime
from remask.engine.prompt import Prompt
from remask.engine.session import Session
from remask.engine.store import DiskStore

PROMPT = [PREFIX, *b"def f(self):\n    "]
NEVER = [MASK, PREFIX, SUFFIX]


class Latin(ByteTokenizer):
    """Every byte is a character, so that whatever a random model writes is a text."""

    def encode(self, text, add_special_tokens=False):
        return Encoding(list(text.encode("latin-1")))

    def decode(self, tokens, skip_special_tokens=True):
        return bytes(t for t in tokens if t < 256).decode("latin-1")


def latin_model(seed):
    return replace(tiny_model(seed), tokenizer=Latin())


def line_end(draft):
    end = draft.find("\n")
    return None if end < 0 else end


RULES = StopRules(Reason.LINE, "", line_end)


def found(model, policy="search", *, wanted=1, trace=None, **values):
    budget = Budget(**{"max_tokens": 12} | values.pop("budget", {}))
    session = values.pop("session", None) or Session(model.transformer.new_cache())
    request = Request(session, policy_named(policy, model.spec), budget, wanted=wanted, trace=trace)
    request.aim, request.shelf = values.pop("aim", None) or Aim(), values.pop("shelf", None)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(PROMPT))
    return request, decoder.texts(request, RULES)


def likely(model, tokens, start):
    """Log p of every token from `start` on, read alone in one causal pass."""
    step = Pass.causal(tokens, 0, torch.device("cpu"))
    scores = model.transformer.logits(model.transformer.forward(step, model.transformer.new_cache())).clone()
    scores[:, NEVER] = -math.inf
    rows = scores.log_softmax(-1)
    return [float(rows[place - 1, tokens[place]]) for place in range(start, len(tokens))]


@pytest.mark.parametrize("policy", ["search", "search:branches=8", "search:branches=3,steps=3", "search:draft=none"])
@pytest.mark.parametrize("seed", range(4))
def test_every_text_is_greedy_behind_its_own_token_and_valued_as_if_alone(seed, policy):
    model = latin_model(seed)
    _, texts = found(model, policy, wanted=8)
    assert len(texts) > 1
    for one in texts:
        end = [END] if one.reason is Reason.END else []
        tokens = [*PROMPT, *one.branch.written, *end]
        want = likely(model, tokens, len(PROMPT))
        assert one.branch.sureness == pytest.approx(want, abs=1e-3)
        assert one.value == pytest.approx(for_length(sum(want), lines_of(one.text)), abs=1e-2)


def test_the_first_text_is_greedy_s_and_the_best_is_not_worth_less():
    for seed in range(2):
        model = latin_model(seed)
        greedy, _ = found(model, "search:branches=1")
        request, texts = found(model, "search", wanted=4)
        first = next(one for one in texts if one.number == 0)
        assert first.branch.written == greedy.written
        assert [one.value for one in texts] == sorted((one.value for one in texts), reverse=True)
        assert request.written == texts[0].branch.written


def test_texts_that_cannot_win_are_given_up_early_and_only_those():
    given_up = 0
    for seed in range(4):
        model = latin_model(seed)
        all_of_them, narrow = found(model, "search:settle=0", wanted=2), found(model, "search:settle=0")
        assert narrow[1][0].text == all_of_them[1][0].text  # every text of these is one line
        assert narrow[1][0].value == pytest.approx(all_of_them[1][0].value, abs=1e-3)
        assert narrow[0].forwards <= all_of_them[0].forwards
        given_up += len(all_of_them[1]) - len(narrow[1])
    assert given_up > 0


def test_a_text_that_may_not_be_shown_comes_after_all_that_may():
    model = latin_model(1)
    _, texts = found(model, wanted=4)
    best = texts[0].text
    _, texts = found(model, wanted=4, aim=Aim(holds=lambda text, reason: text != best))
    assert texts[0].text != best
    assert [one.broken for one in texts] == sorted(one.broken for one in texts)
    assert sum(one.broken for one in texts) == 1
    assert texts[-1].value < -BROKEN_NATS


@pytest.mark.parametrize("polls", range(0, 32, 4))
def test_a_search_that_is_cancelled_leaves_a_usable_session_and_what_it_found(polls):
    model = latin_model(1)
    session, counter = Session(model.transformer.new_cache()), itertools.count()
    _, texts = found(model, wanted=4, session=session, budget={"cancelled": lambda: next(counter) >= polls})
    assert texts
    assert session.cache.length == len(session.tokens)
    again, all_texts = found(model, wanted=4, session=session)
    fresh, all_fresh = found(model, wanted=4)
    assert [one.text for one in all_texts] == [one.text for one in all_fresh]
    assert again.written == fresh.written


@pytest.mark.parametrize("passes", range(3))
def test_where_memory_is_short_for_others_there_is_the_first_text(passes, monkeypatch):
    model = latin_model(1)
    session, trace = Session(model.transformer.new_cache()), Trace()
    greedy, (alone,) = found(model, "autoregressive")
    left, forward = iter([True] * (greedy.forwards + passes)), model.transformer.forward

    def short(*args):
        if not next(left, False):
            raise torch.OutOfMemoryError("Tried to allocate 2 GiB")
        return forward(*args)

    monkeypatch.setattr(model.transformer, "forward", short)
    trace.begin(0, model.decode)
    request, texts = found(model, "search:draft=none,plan=fixed", wanted=4, session=session, trace=trace)
    assert [(one.number, one.text, one.reason) for one in texts] == [(0, alone.text, alone.reason)]
    assert (request.written, request.score) == (greedy.written, pytest.approx(greedy.score))
    assert [(one.what, one.why) for one in trace.events[-2:]] == [("chosen", ""), ("ended", "memory is short")]
    assert session.cache.length == len(session.tokens)
    monkeypatch.undo()
    assert [one.text for one in found(model, session=session)[1]] == [one.text for one in found(model)[1]]


@pytest.mark.parametrize("policy", ["search:branches=2,steps=4,margin=1000", "search:branches=8,steps=3,margin=1000"])
@pytest.mark.parametrize("seed", range(1, 4))
def test_texts_that_end_where_they_part_from_another_are_searched_like_any_other(seed, policy, monkeypatch):
    """Nothing of such a text is left to be read in a later step."""
    model = latin_model(seed)
    logits = model.transformer.logits

    def ending(hidden):
        scores = logits(hidden)
        scores[:, END] += 6.0
        return scores

    monkeypatch.setattr(model.transformer, "logits", ending)
    request, texts = found(model, policy, wanted=8)
    ended = [one for one in texts if one.parent is not None and len(one.branch.written) == one.start]
    assert all(one.reason is Reason.END for one in ended)
    for one in texts:
        end = [END] if one.reason is Reason.END else []
        assert len(one.branch.sureness) == len(one.branch.written) + len(end)
    assert request.session.cache.length == len(request.session.tokens)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("damaged", [False, True])
def test_texts_are_the_same_with_little_memory_and_with_a_disk_for_the_rest(seed, damaged, tmp_path, monkeypatch):
    model, store, gets = latin_model(seed), DiskStore("w", tmp_path / "kv"), []

    def get(name):
        gets.append(name)
        return None if damaged else DiskStore.get(store, name)

    monkeypatch.setattr(store, "get", get)
    monkeypatch.setattr(aside, "WORTH_TOKENS", 1)
    policy = "search:branches=4,steps=4,margin=1000,settle=0"
    _, roomy = found(model, policy, wanted=4)
    monkeypatch.setattr(Branches.__init__, "__defaults__", (24,))
    for shelf in (None, store):
        request, texts = found(model, policy, wanted=4, shelf=shelf)
        assert [(one.text, one.branch.written) for one in texts] == [(one.text, one.branch.written) for one in roomy]
        assert [one.value for one in texts] == pytest.approx([one.value for one in roomy], abs=1e-3)
        assert request.session.cache.length == len(request.session.tokens)
    assert gets
    assert not list(store._cache), "nothing is left behind"
    store.close()


def test_the_trace_says_what_became_of_every_text():
    model, trace = latin_model(1), Trace()
    trace.begin(0, model.decode)
    found(model, "search:branches=6,steps=2,margin=1", trace=trace)
    events = [one for one in trace.events if isinstance(one, Searched)]
    born = {one.node for one in events if one.what in ("born", "settled")} | {0}
    ends = {one.node for one in events if one.what in ("valued", "merged", "pruned")}
    assert born == ends
    assert all(one.parent in born for one in events if one.what == "born")
    assert all(one.why for one in events if one.what in ("pruned", "ended"))
    assert [one.what for one in events[-2:]] == ["chosen", "ended"]
    values = dict.fromkeys(("document", "language", "model", "policy", "prefix", "suffix", "text", "reason"), "")
    record = Record(**values, tokens=0, forwards=0, ms=0.0, events=trace.events)
    assert from_json(json.loads(json.dumps(to_json([record]))))[0].events == trace.events


def test_a_first_text_that_is_sure_enough_ends_the_search_at_once():
    model = latin_model(1)
    plain, _ = found(model, "search:branches=1")
    request, texts = found(model, "search:enough=100")
    assert len(texts) == 1
    assert request.forwards == plain.forwards  # its own passes were listened to


@pytest.mark.parametrize("policy", ["search:branches=0", "search:branches=17", "search:steps=0", "search:settle=2"])
def test_an_impossible_search_is_refused(policy):
    with pytest.raises(InputError):
        policy_named(policy, tiny_model().spec)


def test_a_checkpoint_that_is_not_read_causally_is_not_searched():
    spec = replace(tiny_model().spec, regime=Regime.BLOCK_CAUSAL)
    with pytest.raises(InputError, match="searches"):
        policy_named("search:draft=canvas", spec)
    assert searching(policy_named("default", spec), 4, spec).branches == 1
    assert searching(policy_named("default", tiny_model().spec), 4, tiny_model().spec).branches == 8
