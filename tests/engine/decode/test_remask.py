"""Remasking: what a judge blames is masked again and written right, within bounds, and told to the trace."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import MASK, SPEC, scripted_model, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.denoise import denoise
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import POLICIES, policy_named
from remask.engine.decode.remask import Remasker
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.decode.trace import Remasked, Trace
from remask.engine.judge.blame import Blame, Finding
from remask.engine.prompt import build_prompt
from remask.engine.session import Session
from remask.grammars import grammar_for_language

PYTHON = grammar_for_language("python")
NO_END = StopRules(Reason.END, suffix="", end=lambda text: None)


def written(text, *, errors=(), prefix="x = 1\n", policy="parallel", judge=True, trace=None, most=40):
    """What a scripted model writes for `text` when its canvas is wrong at the offsets in `errors`."""
    length = len(build_prompt(scripted_model("", 0), prefix, "").tokens)
    model = scripted_model(text, length, canvas_errors=frozenset(errors))
    request = Request(Session(model.transformer.new_cache()), policy_named(policy, SPEC), Budget(most), trace=trace)
    if judge:
        request.remasker = Remasker(Blame(PYTHON, prefix, "", closed=False), model.decode)
    if trace is not None:
        trace.begin(0, model.decode)
    decoder = Decoder(model)
    decoder.prepare(request, build_prompt(model, prefix, ""))
    return decoder.decode(request, NO_END)[0], request


def test_a_wrong_token_that_breaks_the_syntax_is_written_right():
    text = "y = f(a, b)\n"
    at = text.index("(")  # the canvas has a closing one there
    assert written(text, errors=[at], judge=False)[0] == "y = f)a, b)\n"
    found, request = written(text, errors=[at])
    assert found == text
    assert request.remasker.removals > 0


def test_a_text_that_holds_costs_no_pass_more():
    text = "y = f(a, b)\nz = y\n"
    free, judged = written(text, judge=False)[1], written(text)[1]
    assert judged.forwards == free.forwards
    assert judged.remasker.removals == 0


def test_removals_come_with_their_reason_into_the_trace():
    trace = Trace()
    written("y = f(a, b)\n", errors=[5], trace=trace)
    removals = [e for e in trace.events if isinstance(e, Remasked)]
    assert removals
    assert all(e.judge == "parser" and "the syntax breaks at ')'" in e.reason for e in removals)
    assert all(")" in e.texts for e in removals)


class Blames:
    """A judge that is never content."""

    def __init__(self, places):
        self.places = places

    def check(self, written, pieces, committed):
        known = tuple(p for p in self.places if p < len(committed) and committed[p])
        return Finding(known, (), "always") if known else None


@settings(max_examples=20)
@given(places=st.sets(st.integers(0, 7), min_size=1), policy=st.sampled_from(["parallel", "confident"]))
def test_decoding_ends_whatever_a_judge_says_and_never_writes_a_mask(places, policy):
    model = tiny_model()
    request = Request(Session(model.transformer.new_cache()), policy_named(policy, SPEC), Budget(24))
    request.remasker = Remasker(Blames(sorted(places)), model.decode)
    decoder = Decoder(model)
    decoder.prepare(request, build_prompt(model, "abc", ""))
    decoder.decode(request, NO_END)
    assert MASK not in request.written
    most = POLICIES[policy].canvas
    assert request.forwards < 24 * (4 * most + 2)


def test_a_canvas_takes_back_committed_positions_only():
    canvas = Canvas(4, MASK)
    canvas.commit(torch.tensor([1, 2, 3, 4]), torch.full((4,), 0.9), torch.tensor([True, True, False, True]))
    canvas.remask([0, 3])
    assert canvas.filled() == [MASK, 2, MASK, MASK]
    assert canvas.open.tolist() == [True, False, True, True]
    assert canvas.confidence.tolist() == pytest.approx([0, 0.9, 0, 0])
    with pytest.raises(AssertionError):
        canvas.remask([0])


def test_a_token_is_forbidden_when_it_is_blamed_again():
    canvas = Canvas(3, MASK)
    canvas.commit(torch.tensor([65, 66, 67]), torch.ones(3), torch.ones(3, dtype=torch.bool))
    remasker = Remasker(Blames([1]), lambda tokens: bytes(tokens).decode())
    remasker.find([], [65, 66, 67], canvas)
    assert not remasker.forbidden
    remasker.find([], [65, 66, 67], canvas)
    assert remasker.forbidden == {(1, 66)}
    remasker.begin()
    assert not remasker.forbidden


def test_a_character_of_several_tokens_belongs_to_its_last():
    model = tiny_model()
    remasker = Remasker(Blames([]), model.decode)
    assert remasker.pieces(list("aé=".encode())) == ["a", "", "é", "="]


@pytest.mark.parametrize("policy", ["default", "single_pass", "lookup"])
def test_verified_text_is_not_judged(policy):
    text = "y = f(a, b)\n"
    assert (
        written(text, errors=[5], policy=policy, judge=False)[0] == written(text, errors=[5], policy=policy)[0] == text
    )


class Expanding:
    """A reader that is surest of an expand token at the first position, and takes down what is forbidden."""

    spec = replace(SPEC, expand_id=65, delete_id=66)
    plain = False

    def __init__(self):
        self.forbidden = []

    def predict(self, request, canvas):
        self.forbidden.append(set(request.remasker.forbidden))
        scores = torch.zeros(int(canvas.open.sum()), MASK + 1)
        scores[:, 70] = 5.0
        if len(self.forbidden) == 1:
            scores[0, 65] = 20.0
        return scores


class Forbids:
    """A judge that forbids the guess at the second position, once."""

    def __init__(self):
        self.asked = 0

    def check(self, written, pieces, committed):
        self.asked += 1
        return Finding((), (1,), "once") if self.asked == 1 else None


def test_what_is_forbidden_stays_where_it_was_when_a_canvas_changes_its_length():
    model = tiny_model()
    request = Request(Session(model.transformer.new_cache()), policy_named("one_by_one", SPEC), Budget(9))
    request.remasker = Remasker(Forbids(), model.decode)
    reader = Expanding()
    denoise(reader, request, Canvas(3, MASK), lambda run: False)
    assert request.remasker.judge.asked > 1
    assert reader.forbidden[1] == set()
