"""Filling tasks by a search: in place of the model's one text, and as the editor shows it."""

import pytest
from tiny import tiny_model

from remask.engine.api import Engine
from remask.engine.decode.policies import policy_named
from remask.engine.evaluation.fill import AsShown, OwnText
from remask.engine.evaluation.metrics import parses
from remask.engine.evaluation.tasks import Task, whole_line

TASK = Task(name="t", prefix="def f(x):\n    y = x\n", suffix="    return y\n", truth="    y += 1\n")


@pytest.mark.parametrize("seed", range(3))
def test_a_searched_text_is_chosen_among_those_that_hold(seed):
    model = tiny_model(seed)
    filler = OwnText(model, 12, whole_line, lines=True)
    one, searched = (filler.fill(TASK, policy_named(name, model.spec)) for name in ("autoregressive", "search"))
    assert searched.tokens <= 12
    whole = [TASK.prefix + filled.text + TASK.suffix for filled in (one, searched)]
    assert parses("python", whole[1]) >= parses("python", whole[0])
    assert filler.fill(TASK, policy_named("search", model.spec)).text == searched.text


def test_the_engine_shows_the_best_of_a_search():
    model = tiny_model(2)
    filled = AsShown(Engine(model), 12).fill(TASK, policy_named("search", model.spec))
    assert not filled.text or parses("python", TASK.prefix + filled.text + TASK.suffix)
