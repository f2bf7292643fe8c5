"""What the head thinks of a text while it is written is what it thinks of the whole text, read at once."""

import math

import pytest
import torch
from tiny import SPEC, tiny_model

from remask.contract.messages import CompletionRequest, NameFacts, PromptCounts, Reason
from remask.engine.api import Engine
from remask.engine.attempts import Attempt, distinct
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.search.value import WRONG_NATS, Aim
from remask.engine.decode.stop import StopRules
from remask.engine.judge.corrector import Corrector, part_shapes, signs_of
from remask.engine.judge.doubter import Doubter
from remask.engine.models.passes import Pass, Taps
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
PROMPT = [*b"def f(a):\n    return a\n\ndef f(b):"]


def head(seed=0):
    generator = torch.Generator().manual_seed(seed)
    parts = {n: torch.randn(s, generator=generator) for n, s in part_shapes(2, SPEC.shape.width, 4).items()}
    return Corrector(parts=parts, taps=(0, 1), threshold=0.5, strict=0.9, base="")


@torch.inference_mode()
def whole(decoder, model, corrector, text):
    """The head's word on a text that is read at once."""
    taps = Taps(corrector.taps)
    hidden = model.transformer.forward(
        Pass.causal([*PROMPT, *text], 0, model.transformer.device), model.transformer.new_cache(), taps
    )
    scores = decoder._reader.scores(hidden[len(PROMPT) - 1 : -1])
    return corrector.wrong(taps.stacked()[len(PROMPT) :], signs_of(scores, torch.tensor(text))).tolist()


PENALISED = ["single_pass:contrast=0.6", "default:repetition=2"]
POLICIES = ["autoregressive", "default", "single_pass", "lookup_single_pass", "auto", *PENALISED]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_policys_doubts_are_those_of_the_text(policy, temperature):
    model, corrector = tiny_model(2), head()
    request = Request(Session(model.transformer.new_cache()), policy_named(policy, SPEC), Budget(20), seed=5)
    request.temperature, request.doubter = temperature, Doubter(corrector)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(PROMPT))
    decoder.decode(request, OPEN)
    text, want = request.written, whole(decoder, model, corrector, request.written)
    found = request.doubter.wrong
    assert len(found) >= len(text) - 1  # the last token is written, not read; one that is cut off may be
    count = min(len(found), len(want))
    assert found[:count] == pytest.approx(want[:count], abs=1e-3)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_searchs_texts_are_doubted_as_if_each_was_read_alone(seed, steps):
    model, corrector = tiny_model(seed), head()
    policy = policy_named(f"search:branches=4,steps={steps}", SPEC)
    request = Request(Session(model.transformer.new_cache()), policy, Budget(16), aim=Aim(), wanted=4)
    request.doubter = Doubter(corrector)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(PROMPT))
    found = decoder.texts(request, OPEN)
    assert len(found) > 1
    for one in found:
        wrong, want = one.branch.doubter.wrong, whole(decoder, model, corrector, one.branch.written)
        pairs = [(w, v) for w, v in zip(wrong, want, strict=False) if not math.isnan(w)]
        assert len(wrong) == len(one.branch.written)  # whatever was read behind its end
        assert len(pairs) >= len(want) - 2  # the span's token and the last one may not be known
        assert [w for w, _ in pairs] == pytest.approx([v for _, v in pairs], abs=2e-3)


def attempt(text, score, doubt):
    names, counts = NameFacts(), PromptCounts()
    return Attempt(
        text=text, reason=Reason.END, detail="", score=score, names=names, tokens=1, forwards=1, prompt=counts,
        prompted=0.0, decode_ms=1.0, doubt=doubt,
    )  # fmt: skip


def test_doubts_lower_the_rank_and_come_last():
    assert [a.text for a in distinct([attempt("a", -0.2, 0.9), attempt("b", -0.25, 0.1)])] == ["b", "a"]
    assert [a.text for a in distinct([attempt("a", -0.2, 1.0), attempt("b", -0.21 - WRONG_NATS, 0.0)])] == ["a", "b"]


def test_candidates_are_judged_and_one_text_is_not(monkeypatch):
    made = []
    monkeypatch.setattr("remask.engine.judges.Doubter", lambda corrector: made.append(Doubter(corrector)) or made[-1])
    engine = Engine(tiny_model(2), corrector=head())
    ask = {"document": "a", "language": "python", "prefix": "x = ", "max_tokens": 8}
    ask["policy"] = "parallel:remask=corrector"
    engine.complete(CompletionRequest(**ask))
    assert not made
    engine.complete(CompletionRequest(**ask, candidates=2))
    assert made
    assert all(0 < one.mean < 1 for one in made)
    ask["policy"] = "auto"
    count = len(made)
    engine.complete(CompletionRequest(**ask, candidates=2))
    assert len(made) == count + 1  # a search forks it
