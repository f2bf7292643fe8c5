"""Remasking by numbers: lost confidence and the corrector head, each against a naive reading and within its bounds."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import END, MASK, SPEC, VOCAB, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.denoise import denoise, review
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import POLICIES, policy_named
from remask.engine.decode.policy import Policy, Verify
from remask.engine.decode.regimes import reader_for
from remask.engine.decode.remask import PER_STEP, TRIES, Falling, Remasker
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.decode.trace import Remasked, Trace
from remask.engine.judge.corrector import Corrector, part_shapes, signs_of
from remask.engine.models.passes import Pass, Taps
from remask.engine.models.spec import Layout, Regime
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
PROMPT = [65, 66, 67, 68, 69]


def decode(model, policy, most=16, **more):
    request = Request(Session(model.transformer.new_cache()), policy, Budget(most), **more)
    if request.trace is not None:
        request.trace.begin(0, model.decode)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(PROMPT))
    decoder.decode(request, OPEN)
    return request


class Told:
    """A reader whose pass n gives, at each position, what `table[n]` says: {position: (token, probability)}."""

    spec = SPEC
    plain = False

    def __init__(self, table):
        self.table, self.asked = table, []

    def rescored(self, request, canvas):
        return ~canvas.open

    def predict(self, request, canvas, wanted=None):
        wanted = canvas.open if wanted is None else wanted
        say = self.table[min(len(self.asked), len(self.table) - 1)]
        self.asked.append(wanted.tolist())
        scores = torch.full((len(canvas), VOCAB), -30.0)
        for place, (token, p) in say.items():
            scores[place] = torch.tensor((1 - p) / (VOCAB - 1)).log()
            scores[place, token] = torch.tensor(p).log()
        return scores[wanted]


def told(table, size=2, policy="parallel:remask=confidence,surer=0.9", trace=None):
    request = Request(Session(None), policy_named(policy, SPEC), Budget(99), trace=trace)
    request.remasker = Remasker(None, str, Falling(request.policy.doubt, request.policy.fall, request.policy.surer))
    reader = Told(table)
    if trace is not None:
        trace.begin(0, str)
    return denoise(reader, request, Canvas(size, MASK), lambda run: False), reader, request


FICKLE = [
    {0: (70, 0.95), 1: (80, 0.3)},  # the first is sure, the second is not
    {0: (71, 0.95), 1: (81, 0.95)},  # with the second in sight the first looks wrong
    {0: (71, 0.95), 1: (81, 0.95)},
]


def test_a_token_that_lost_confidence_is_masked_and_written_anew():
    trace = Trace()
    canvas, reader, request = told(FICKLE, trace=trace)
    assert canvas.filled() == [71, 81]
    assert reader.asked == [[True, True], [True, True], [True, True]]  # committed ones are looked at as well
    (removal,) = [e for e in trace.events if isinstance(e, Remasked)]
    assert (removal.judge, removal.positions, removal.ids) == ("confidence", [0], [70])
    assert removal.reason == "its probability fell from 0.95 to 0.00"
    assert request.remasker.removals == 1


def test_a_token_stays_where_the_pass_is_not_sure_of_another():
    unsure = [FICKLE[0], {0: (71, 0.89), 1: (81, 0.95)}]  # the first would not be committed at 0.9
    canvas, _, request = told(unsure)
    assert canvas.filled() == [70, 81]
    assert request.remasker.removals == 0
    surer = [FICKLE[0], {0: (71, 0.91), 1: (81, 0.95)}]
    assert told(surer)[0].filled() == [71, 81]


def test_without_it_nothing_is_looked_at_twice():
    request = Request(Session(None), policy_named("parallel", SPEC), Budget(99))
    reader = Told(FICKLE)
    canvas = denoise(reader, request, Canvas(2, MASK), lambda run: False)
    assert (canvas.filled(), reader.asked) == ([70, 81], [[True, True], [False, True]])


@given(
    now=st.lists(st.floats(0, 1, width=32), min_size=6, max_size=6),
    then=st.lists(st.floats(0, 1, width=32), min_size=6, max_size=6),
    doubt=st.floats(0, 1, width=32),
    fall=st.floats(0, 1, width=32),
)
def test_fallen_is_what_the_rule_says(now, then, doubt, fall):
    found = Falling(doubt, fall).lost(torch.tensor(now), torch.tensor(then)).tolist()
    f32 = lambda x: float(torch.tensor(x))  # noqa: E731
    assert found == [n < f32(doubt) or n < f32(f32(fall) * t) for n, t in zip(now, then, strict=True)]


def full(size):
    canvas = Canvas(size, MASK)
    canvas.commit(torch.arange(size) + 65, torch.full((size,), 0.9), torch.ones(size, dtype=torch.bool))
    return canvas


def test_the_worst_go_first_and_no_more_than_allowed():
    remasker, canvas = Remasker(None, str, Falling(0.5, 0.0)), full(6)
    now = torch.tensor([0.4, 0.1, 0.9, 0.2, 0.3, 0.01])
    rounds = [remasker.find_fallen(now, canvas, 0) for _ in range(4)]
    assert [r and r.remask for r in rounds] == [(1, 3, 5), (1, 3, 5), (0, 4), (0, 4)]
    assert len(rounds[0].remask) == PER_STEP
    assert [remasker.find_fallen(now, canvas, 0) for _ in range(2)] == [None, None]
    assert TRIES == 2
    assert remasker.find_fallen(now, canvas, 6) is not None  # another canvas


def test_the_corrector_is_heard_once_a_position():
    head = replace(corrector(), threshold=0.5)
    remasker, canvas = Remasker(None, str, corrector=head), full(4)
    wrong = torch.tensor([0.6, 0.4, 0.9])  # of the first three
    assert remasker.find_doubted(wrong, canvas, 0).remask == (0, 2)
    assert remasker.find_doubted(wrong, canvas, 0) is None


class Noise:
    """A reader that says something else in every pass."""

    spec = SPEC
    plain = False

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def rescored(self, request, canvas):
        return ~canvas.open

    def predict(self, request, canvas, wanted=None):
        rows = int((canvas.open if wanted is None else wanted).sum())
        scores = 6 * torch.randn(rows, VOCAB, generator=self.generator)
        scores[:, list(SPEC.never)] = -torch.inf
        return scores


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 12), policy=st.sampled_from(["parallel", "confident"]))
def test_a_canvas_ends_whatever_passes_say(seed, size, policy):
    request = Request(Session(None), policy_named(f"{policy}:remask=confidence,doubt=1,fall=1", SPEC), Budget(99))
    request.remasker = Remasker(None, str, Falling(1.0, 1.0))
    canvas = denoise(Noise(seed), request, Canvas(size, MASK), lambda run: False)
    assert canvas.resolved
    assert MASK not in canvas.filled()
    assert request.remasker.removals <= TRIES * size


def test_an_old_text_is_kept_as_far_as_it_is_likely():
    request = Request(Session(None), policy_named("parallel:remask=off", SPEC), Budget(99))
    canvas = Canvas(4, MASK)
    canvas.start([70, 71, 72])
    reader = Told([{0: (70, 0.8), 1: (90, 0.97), 2: (72, 0.4), 3: (73, 0.5)}, {1: (90, 0.97), 3: (73, 0.99)}])
    review(reader, request, canvas)
    assert canvas.filled() == [70, MASK, 72, MASK]
    assert canvas.confidence.tolist() == pytest.approx([0.8, 0, 0.4, 0])


def test_a_canvas_that_starts_with_an_old_text_is_looked_at_first():
    request = Request(Session(None), policy_named("parallel:remask=off", SPEC), Budget(99))
    canvas = Canvas(4, MASK)
    canvas.start([70, 71, 72])
    seen = {0: (70, 0.8), 1: (90, 0.97), 2: (72, 0.4), 3: (73, 0.99)}
    reader = Told([seen])
    assert denoise(reader, request, canvas, lambda run: False).filled() == [70, 90, 72, 73]
    assert reader.asked == [[True] * 4, [False, True, False, True]]


BLOCK = {"block_size": 8, "verifies": False, "layout": Layout.CHAT}
REGIMES = {
    "causal": SPEC,
    "block_causal": replace(SPEC, regime=Regime.BLOCK_CAUSAL, shift=0, **BLOCK),
    "block_causal_shifted": replace(SPEC, regime=Regime.BLOCK_CAUSAL, shift=1, **BLOCK),
    "bidirectional": replace(SPEC, regime=Regime.BIDIRECTIONAL, shift=0, **BLOCK),
    "bidirectional_shifted": replace(SPEC, regime=Regime.BIDIRECTIONAL, shift=1, **BLOCK),
}


@pytest.mark.parametrize("spec", REGIMES.values(), ids=REGIMES)
def test_committed_tokens_are_scored_in_the_same_pass_as_the_open_ones(spec):
    model = tiny_model(3, spec)
    policy = Policy(name="t", canvas=8, verify=Verify.OFF)
    request = Request(Session(model.transformer.new_cache()), policy, Budget(99))
    reader = reader_for(model)
    with torch.inference_mode():
        reader.prepare(request, Prompt(PROMPT), lambda: False)
        canvas = reader.canvas(request, 4)
        some = torch.arange(len(canvas)) % 2 == 0
        canvas.commit(torch.arange(len(canvas)) + 97, torch.ones(len(canvas)), some & canvas.open)
        rescored = reader.rescored(request, canvas)
        assert rescored.any()
        both = reader.predict(request, canvas, rescored | canvas.open)
        torch.testing.assert_close(both[canvas.open[rescored | canvas.open]], reader.predict(request, canvas))


def test_what_is_written_already_is_not_scored_again():
    strict = replace(SPEC, regime=Regime.STRICT_CAUSAL, shift=0, **BLOCK)
    policy = Policy(name="t", canvas=8, passes=8, verify=Verify.OFF, remask="confidence", doubt=1.0)
    requests = [decode(tiny_model(3, strict), policy, remasker=r) for r in (None, Remasker(None, str, Falling(1, 1)))]
    assert requests[0].written == requests[1].written
    assert requests[1].remasker.removals == 0


def corrector(seed=0, taps=(0, 1), **changes):
    generator = torch.Generator().manual_seed(seed)
    parts = {n: torch.randn(s, generator=generator) for n, s in part_shapes(len(taps), SPEC.shape.width, 4).items()}
    return Corrector(**{"parts": parts, "taps": taps, "threshold": 0.5, "strict": 0.9, "base": ""} | changes)


def test_doubts_are_the_heads_word_on_a_cold_causal_pass():
    model, tokens, head = tiny_model(1), [97, 98, 99, 100], corrector()
    request = Request(Session(model.transformer.new_cache()), POLICIES["parallel"], Budget(99))
    reader = reader_for(model)
    with torch.inference_mode():
        reader.prepare(request, Prompt(PROMPT), lambda: False)
        found = reader.doubts(request, tokens, head)
        taps = Taps(head.taps)
        whole = Pass.causal([*PROMPT, *tokens], 0, model.transformer.device)
        hidden = model.transformer.forward(whole, model.transformer.new_cache(), taps)
        scores = reader.scores(hidden[len(PROMPT) - 1 : -1])
        want = head.wrong(taps.stacked()[len(PROMPT) :], signs_of(scores, torch.tensor(tokens)))
    torch.testing.assert_close(found, want, atol=1e-4, rtol=1e-3)
    assert found.isfinite().all()


class Sworn(Corrector):
    """A head that doubts the tokens it was told to, as often as it sees them."""

    def wrong(self, states, signs):
        return torch.tensor([0.9 if bad else 0.1 for bad in self.facts["bad"](len(states))])


def sworn(bad):
    fields = {name: getattr(corrector(), name) for name in ("parts", "taps", "threshold", "strict", "base")}
    return Sworn(**fields, facts={"bad": bad})


PARALLEL = POLICIES["parallel"]


def test_a_head_without_doubts_changes_neither_text_nor_cache():
    free = decode(tiny_model(2), PARALLEL)
    judged = decode(tiny_model(2), PARALLEL, remasker=Remasker(None, str, corrector=sworn(lambda n: [False] * n)))
    assert judged.written == free.written
    assert judged.session.tokens == free.session.tokens
    torch.testing.assert_close(judged.session.cache.snapshot(), free.session.cache.snapshot(), atol=1e-5, rtol=1e-4)
    assert judged.forwards - free.forwards <= 1  # the pass that settles a canvas is the one that judges it


def test_what_the_head_doubts_is_masked_once_and_the_text_ends():
    trace = Trace()
    remasker = Remasker(None, str, corrector=sworn(lambda n: [True] * n))
    request = decode(tiny_model(2), PARALLEL, trace=trace, remasker=remasker)
    removals = [e for e in trace.events if isinstance(e, Remasked)]
    assert removals
    assert all(e.judge == "corrector" and "wrong with a probability of 0.90" in e.reason for e in removals)
    places = [(e.at, p) for e in removals for p in e.positions]
    assert len(places) == len(set(places))
    assert len(request.written) == 16 or END in request.written
    assert MASK not in request.written


def test_a_cache_after_corrections_is_that_of_the_text():
    model = tiny_model(2)
    request = decode(model, PARALLEL, remasker=Remasker(None, str, corrector=sworn(lambda n: [True] * n)))
    held = request.session.tokens
    assert held == [*PROMPT, *request.written][: len(held)]
    with torch.inference_mode():
        cold = model.transformer.new_cache()
        model.transformer.forward(Pass.causal(held, 0, model.transformer.device), cold)
        cold.advance(len(held))
    torch.testing.assert_close(request.session.cache.snapshot(), cold.snapshot(), atol=1e-4, rtol=1e-3)
