"""The search as a whole: what it finds is what its branches would have written alone, and it ends cleanly."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from tiny import END, MASK, PREFIX, SUFFIX, ByteTokenizer, Encoding, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import policy_named
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.search.value import BROKEN_NATS, Aim
from remask.engine.decode.stop import StopRules
from remask.engine.decode.trace import Trace
from remask.engine.models.transformer import Pass
from remask.engine.prompt import Prompt
from remask.engine.session import Session

PROMPT = [PREFIX, *b"def f(self):\n    "]
SUFFIX_TEXT = "\nprint(f(1))\n"
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


def aim(suffix=SUFFIX_TEXT, **judges):
    return Aim(encode=lambda text: list(text.encode("latin-1")), suffix=suffix, **judges)


def found(model, policy="search", *, wanted=1, suffix=SUFFIX_TEXT, trace=None, **values):
    budget = Budget(**{"max_tokens": 12} | values.pop("budget", {}))
    session = values.pop("session", None) or Session(model.transformer.new_cache())
    request = Request(session, policy_named(policy, model.spec), budget, wanted=wanted, trace=trace)
    request.aim = values.pop("aim", None) or aim(suffix)
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
        text, after = one.text.encode("latin-1"), SUFFIX_TEXT.encode()[:8]
        following = likely(model, [*PROMPT, *text, *after], len(PROMPT) + len(text))
        assert one.value == pytest.approx(sum(want) + sum(following), abs=1e-2)
