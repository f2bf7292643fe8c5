"""Syntax errors before and after the gate, and what judging costs."""

from itertools import count

import pytest
from tiny import scripted_model, tiny_model

from remask.contract.messages import CompletionRequest
from remask.engine.api import Engine
from remask.engine.decode.policies import policy_named
from remask.engine.evaluation.infilling import describe
from remask.engine.evaluation.syntax import Report, Standing, measure, standing
from remask.engine.evaluation.tasks import Task
from remask.engine.evaluation.watched import WatchedEngine
from remask.engine.prompt import build_prompt

PREFIX, SUFFIX = "def f(x):\n    return ", "\n"
CALLS = "function f() {\n  return g("


def task(prefix=PREFIX, suffix=SUFFIX, truth="x", language="python", test=""):
    return Task(name=f"{language}:{prefix}", prefix=prefix, suffix=suffix, truth=truth, language=language, test=test)


@pytest.mark.parametrize(
    ("hole", "text", "expected"),
    [
        (task(), "x", Standing.WHOLE),
        (task(), "", Standing.WHOLE),
        (task(), "(x", Standing.ADDED),
        (task("x = (", "\ny\n"), "", Standing.EMPTY),
        (task("x = (", "\ny\n"), "a", Standing.OPEN),
        (task("x = (", "\ny\n"), "a]", Standing.ADDED),
        (task("def f(x):\n    ", "\n"), "if x:", Standing.OPEN),
        (task("def f(x):\n    ", "\n"), "x = 1\n  y = 2", Standing.ADDED),
        (task('x = "a', "\ny\n"), "b", Standing.OPEN),
        (task(CALLS, "\n}\n", language="javascript"), "x);", Standing.WHOLE),
        (task(CALLS, "\n}\n", language="javascript"), "x", Standing.OPEN),
        (task(CALLS, "\n}\n", language="javascript"), "x]", Standing.ADDED),
    ],
)
def test_how_a_file_stands_with_a_text(hole, text, expected):
    assert standing(hole, text) is expected


def test_a_draft_whose_tokens_ran_out_may_do_without_its_end():
    assert standing(task(), "(x", finished=False) is Standing.OPEN
    assert standing(task(), "(x]", finished=False) is Standing.ADDED


def measured(text, policies, tasks, **faults):
    model = scripted_model(text, len(build_prompt(tiny_model(), PREFIX, SUFFIX)), **faults)
    engine = WatchedEngine(Engine(model))
    chosen = [policy_named(name, model.spec) for name in policies]
    report = Report(split="made", seed=0, tasks=len(tasks), **describe(model))
    return measure(engine, tasks, chosen, 16, report).to_dict()


def test_a_draft_that_breaks_the_file_is_counted_before_the_gate_and_not_shown():
    right = "\ndef check(f):\n    assert f(4) == 4\ncheck(f)\n"
    values = measured("x)", ["default"], [task(test=right)])
    (row,) = values["rows"]
    assert (row["drafts"]["added"], row["shown"]["added"]) == (1, 0)
    assert row["draft_pass_rate"] == 0.0
    assert row["share"] > 0
    assert values["languages"] == {"python": 1}


def test_passes_removals_and_pass_rates_by_policy():
    right = "\ndef check(f):\n    assert f(4) == 8\ncheck(f)\n"
    values = measured("x + x", ["parallel", "parallel:remask=off"], [task(test=right)], canvas_errors=frozenset({1}))
    on, off = values["rows"]
    assert on["shown_pass_rate"] == 1.0
    assert on["removed"] > 0 == off["removed"]
    assert on["canvas_passes"] >= off["canvas_passes"] >= 1.0
    assert on["judge_ms"] > 0 == off["judge_ms"]


@pytest.mark.parametrize("policy", ["default", "parallel", "parallel:remask=all"])
def test_the_watched_engine_writes_what_the_engine_writes(policy):
    request = CompletionRequest(
        document="a.py", language="python", prefix="x = 1\ny = ", suffix="\n", policy=policy, deadline_ms=600_000
    )
    plain = Engine(tiny_model(4))
    watched = WatchedEngine(plain, count().__next__).watch(request)
    expected = plain.complete(request)
    assert (watched.result.text, watched.result.reason) == (expected.text, expected.reason)
    assert watched.result.forwards == expected.forwards
    assert watched.decode_ms > 0 < watched.gate_ms
    assert (watched.judge_ms > 0) is (policy != "default")
    assert watched.draft.startswith(watched.result.text)


def test_ctrl_c_keeps_what_every_policy_has_done(monkeypatch):
    watch, calls = WatchedEngine.watch, []

    def interrupted(self, request):
        calls.append(request.policy)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return watch(self, request)

    monkeypatch.setattr(WatchedEngine, "watch", interrupted)
    tasks = [task(f"{'# a' * n}\n{PREFIX}") for n in range(3)]
    values = measured("x", ["default", "parallel"], tasks)
    assert (values["interrupted"], [row["n"] for row in values["rows"]]) == (True, [1, 1])
