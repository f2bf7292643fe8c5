"""Guesses that may not be made: exchanged before they are committed, at no pass, and never for something worse."""

from functools import partial

import pytest
import torch
from tiny import END, MASK, SPEC, scripted_model

from remask.contract.messages import Reason
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.guard import CANDIDATES, Guard
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named
from remask.engine.decode.remask import Remasker
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.sample import choose
from remask.engine.decode.stop import StopRules
from remask.engine.decode.trace import Remasked, Trace
from remask.engine.judge.blame import Blame
from remask.engine.prompt import build_prompt
from remask.engine.session import Session
from remask.grammars import grammar_for_language

PYTHON = grammar_for_language("python")
NO_END = StopRules(Reason.END, suffix="", end=lambda text: None)


def decode(tokens):
    return bytes(t for t in tokens if t < 256).decode("utf-8", "replace")


class Never:
    """Breaks at the first of some characters."""

    def __init__(self, characters):
        self.characters = characters
        self.asked = 0

    def breaks(self, written, pieces):
        self.asked += 1
        return next((place for place, piece in enumerate(pieces) if set(piece) & set(self.characters)), None)


def exchanged(guard, rows, *, known="", everywhere=False):
    """What becomes of a canvas that begins with `known`, and for each open position lists likely characters."""
    canvas = Canvas(len(known) + len(rows), MASK)
    start = torch.arange(len(canvas)) < len(known)
    canvas.commit(torch.tensor([*known.encode(), *[MASK] * len(rows)]), torch.ones(len(canvas)), start)
    scores = torch.zeros(len(rows), MASK + 1)
    for row, characters in enumerate(rows):
        for rank, character in enumerate(characters):
            scores[row, ord(character)] = 20.0 - rank
    tokens, sure = choose(scores, 0.0, ())
    wrong = guard.exchange(
        [], canvas, scores, (tokens, sure), lambda scores, number: choose(scores, 0.0, ()), everywhere=everywhere
    )
    return decode(tokens.tolist()), sure, wrong


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("rows", [["ab"], ["(b"], ["ab", "(b"], ["(a", "(b", "cd"], ["ab", "cd", "(("]])
def test_it_objects_where_it_would_exchange_something(rows, everywhere):
    canvas = Canvas(len(rows), MASK)
    first = "".join(row[0] for row in rows)
    objects = Guard(Never("("), decode).objects([], canvas, list(first.encode()), everywhere=everywhere)
    tried = Never("(")
    exchanged(Guard(tried, decode), rows, everywhere=everywhere)
    assert objects is (tried.asked > (2 if "(" in first else 1))  # beyond the look that finds out


def test_the_first_guess_gives_way_to_the_best_that_does_not_break():
    text, sure, wrong = exchanged(Guard(Never("xy"), decode), ["xyab", "c"], known="ab")
    assert text == "ac"
    assert wrong == [(2, ord("x")), (2, ord("y"))]
    assert float(sure[0]) == pytest.approx(0.731, abs=0.01)  # among those that may stand there


def test_a_guess_behind_an_open_position_waits_for_the_last_pass():
    rows = ["ab", "xcd"]
    assert exchanged(Guard(Never("x"), decode), rows)[0] == "ax"
    text, sure, wrong = exchanged(Guard(Never("x"), decode), rows, everywhere=True)
    assert text == "ac"
    assert wrong == []  # something else may come to stand before it
    assert float(sure[1]) == pytest.approx(0.245, abs=0.01)  # among all


def test_a_guess_stays_where_no_candidate_is_better():
    every = "".join(map(chr, range(32, 127)))
    guard = Guard(Never(every), decode)
    assert exchanged(guard, ["abcdefghijklmnopqrstuvwxyz"])[0] == "a"
    assert guard.syntax.asked == CANDIDATES + 2


def test_a_text_that_holds_costs_one_look():
    guard = Guard(Never("x"), decode)
    assert exchanged(guard, ["ab", "cd"])[0] == "ac"
    assert guard.syntax.asked == 1


class Unfinished:
    """Objects to texts that do not end with a bracket."""

    def objection(self, text, reason):
        return "" if text.rstrip().endswith(")") else "no end"


def written(text, *, wrong, guard, policy="parallel", prefix="x = 1\n", rules=NO_END, most=40):
    """What a scripted model writes for `text` when its canvas is wrong at the offsets in `wrong`."""
    length = len(build_prompt(scripted_model("", 0), prefix, "").tokens)
    model = scripted_model(text, length, canvas_errors=frozenset(wrong))
    request = Request(Session(model.transformer.new_cache()), policy_named(policy, SPEC), Budget(most), trace=Trace())
    blame = Blame(PYTHON, prefix, "", closed=False)
    request.remasker = Remasker(blame, model.decode, guard=guard(blame, model.decode, rules=rules))
    request.trace.begin(0, model.decode)
    decoder = Decoder(model)
    decoder.prepare(request, build_prompt(model, prefix, ""))
    return decoder.decode(request, rules), request


def test_a_guess_that_breaks_the_syntax_is_never_committed():
    text = "y = f(a, b)\n"
    at = text.index("(")  # the canvas has a closing one there, and the right one comes second
    (found, _), request = written(text, wrong=[at], guard=Guard, policy="one_by_one")
    assert found == text
    assert not any(")" in event.texts for event in request.trace.events if isinstance(event, Remasked))


def test_a_hole_that_may_not_end_yet_goes_on():
    line = StopRules(Reason.LINE, suffix="", end=lambda text: text.index("\n") if "\n" in text else None)
    guard = partial(Guard, ends=Unfinished(), end_ids=frozenset([END]))
    (found, _), request = written("y = f(a\n)\n", wrong=[], guard=guard, rules=line)
    assert "\n" not in found[: len("y = f(a") + 1]
    early = [e for e in request.trace.events if isinstance(e, Remasked)]
    assert early
    assert all("it may not end here: the draft has no end" in e.reason for e in early)
    assert request.remasker.removals


def test_a_hole_that_may_end_does_at_no_cost():
    line = StopRules(Reason.LINE, suffix="", end=lambda text: text.index("\n") if "\n" in text else None)
    plain = written("y = f(a)\nz", wrong=[], guard=Guard, rules=line)
    judged = written("y = f(a)\nz", wrong=[], guard=partial(Guard, ends=Unfinished()), rules=line)
    assert judged[0] == plain[0] == ("y = f(a)", Reason.LINE)
    assert judged[1].forwards == plain[1].forwards
