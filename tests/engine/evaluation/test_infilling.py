"""Filling and judging tasks: figures, several policies, and Ctrl-C."""

from dataclasses import replace

import pytest
from tiny import SPEC, scripted_model, tiny_model

from remask.contract.messages import Reason, Snippet
from remask.engine.api import Engine
from remask.engine.decode.policies import policy_named
from remask.engine.evaluation.fill import AsShown, Filled, OwnText
from remask.engine.evaluation.infilling import Report, Scorer, describe, evaluate
from remask.engine.evaluation.sandbox import Verdict
from remask.engine.evaluation.tasks import Task, rest_of_line, whole_line
from remask.engine.prompt import build_prompt

PREFIX = "def double(x):\n"
TEST = "\ndef check(candidate):\n    assert candidate(4) == 8\n\ncheck(double)\n"


def task(name="t", truth="    return 2 * x\n", suffix="", test=TEST, **more):
    return Task(name=name, prefix=PREFIX, suffix=suffix, truth=truth, test=test, **more)


def filled(text, tokens=4, forwards=2, ms=10.0, reason=Reason.END):
    return Filled(
        text=text,
        reason=reason,
        tokens=tokens,
        forwards=forwards,
        prompt_tokens=5,
        prompt_passes=1,
        prompt_ms=ms / 2,
        decode_ms=ms / 2,
        total_ms=ms,
    )


class Scripted:
    """Fills from a table, or interrupts where it has no entry."""

    def __init__(self, texts):
        self.texts = texts
        self.calls = []

    def fill(self, task, policy):
        self.calls.append((task.name, policy.name))
        if task.name not in self.texts:
            raise KeyboardInterrupt
        return self.texts[task.name]


def report(tasks=1):
    return Report(split="s", seed=0, tasks=tasks, gate=False, **describe(tiny_model()))


def policies(*names):
    return [policy_named(name, tiny_model().spec) for name in names]


def test_figures_of_right_wrong_and_broken_texts():
    texts = {
        "same": filled("    return 2 * x\n", ms=10.0),
        "right": filled("    return x + x\n", ms=20.0, reason=Reason.LINE),
        "wrong": filled("    return x\n", ms=30.0),
        "broken": filled("    return (x\n", ms=40.0),
        "empty": filled("", tokens=0, forwards=1, ms=50.0),
    }
    done = evaluate(Scripted(texts), [task(name) for name in texts], policies("default"), report(5))
    values = done.to_dict()
    assert (values["n"], values["pass_rate"], values["exact_match"], values["parse_rate"]) == (5, 0.4, 0.2, 0.6)
    assert values["failures"] == {"empty": 1, "syntax": 1, "test": 1}
    assert values["ended"] == {"end": 4, "line": 1}
    assert (values["tokens"], values["forwards"], values["tpf"]) == (16, 9, round(16 / 9, 3))
    assert (values["ms_p50"], values["ms_p95"], values["ms_total"]) == (30.0, 50.0, 150.0)
    assert values["pass_interval"][0] < 0.4 < values["pass_interval"][1]
    assert {"split", "edit_similarity", "kept_rate", "model", "policy"} <= values.keys()
    assert [s["passed"] for s in done.samples()] == [True, True, False, False, False]


def test_without_a_test_nothing_passes_or_fails():
    texts = {"a": filled("    return 2 * x"), "b": filled("    return 2")}
    values = evaluate(Scripted(texts), [task(n, test="") for n in texts], policies("default"), report()).to_dict()
    assert (values["pass_rate"], values["pass_interval"]) == (None, None)
    assert values["exact_match"] == 0.5
    assert values["failures"] == {"differs": 1}


def test_policies_take_turns_on_the_same_tasks():
    filler = Scripted({"a": filled("x"), "b": filled("y")})
    done = evaluate(filler, [task("a", test=""), task("b", test="")], policies("default", "parallel"), report())
    assert filler.calls[2:] == [("a", "default"), ("a", "parallel"), ("b", "parallel"), ("b", "default")]
    assert [row.policy for row in done.rows] == ["default", "parallel"]
    assert [(s["policy"], s["task"]) for s in done.samples()] == [
        ("default", "a"),
        ("parallel", "a"),
        ("default", "b"),
        ("parallel", "b"),
    ]
    assert done.to_dict()["policies"][1]["same_text"] == 1.0


def test_an_interrupt_keeps_the_tasks_that_all_policies_have_done():
    tasks = [task(name, test="") for name in ("a", "b", "never", "c")]
    filler = Scripted({"a": filled("x"), "b": filled("y")})
    done = evaluate(filler, tasks, policies("default", "parallel"), report(4))
    assert done.interrupted
    assert {row.n for row in done.rows} == {2}
    with pytest.raises(KeyboardInterrupt):
        evaluate(Scripted({}), tasks, policies("default"), report(4))


def test_equal_texts_are_tested_once(monkeypatch):
    runs = []
    monkeypatch.setattr(
        "remask.engine.evaluation.infilling.run_program",
        lambda program: runs.append(program) or Verdict(True),
    )
    scorer = Scorer()
    for text in ("    return x\n", "    return x\n", "    return 0\n", "    return (\n"):
        scorer.score(task(), filled(text))
    assert len(runs) == 2


def test_the_models_own_text_passes_its_test():
    one = task(suffix="\n\n# the end\n")
    model = scripted_model(one.truth + "more", len(build_prompt(tiny_model(), one.prefix, one.suffix)))
    filler = OwnText(model, 64, whole_line)
    done = evaluate(filler, [one], policies("default", "autoregressive"), report())
    assert [row.pass_rate for row in done.rows] == [1.0, 1.0]
    assert [row.exact_match for row in done.rows] == [1.0, 1.0]
    drafted, plain = done.rows
    assert drafted.tokens == plain.tokens == len(one.truth)
    assert plain.forwards == len(one.truth)  # one token a pass, the prompt's passes left out
    assert drafted.forwards < plain.forwards


@pytest.mark.parametrize(
    ("end", "room", "text", "reason"),
    [
        (whole_line, 64, "ab\n", Reason.LINE),
        (rest_of_line, 64, "ab", Reason.LINE),
        (None, 64, "ab\ncd", Reason.END),
        (None, 4, "ab\nc", Reason.BUDGET),
    ],
)
def test_where_the_models_own_text_ends(end, room, text, reason):
    model = scripted_model("ab\ncd", len(build_prompt(tiny_model(), PREFIX, "")))
    done = OwnText(model, room, end).fill(task(), policies("default")[0])
    assert (done.text, done.reason) == (text, reason)


@pytest.mark.parametrize(
    ("script", "room", "text"),
    [("ab", 64, "ab\n"), ("ab\n", 64, "ab\n"), ("", 64, ""), ("abcd", 2, "ab")],  # what is unfinished stays so
)
def test_a_whole_line_that_ends_without_a_line_feed_gets_it(script, room, text):
    model = scripted_model(script, len(build_prompt(tiny_model(), PREFIX, "")))
    assert OwnText(model, room, whole_line, lines=True).fill(task(), policies("default")[0]).text == text


def test_every_fill_reads_its_prompt_anew():
    filler = OwnText(tiny_model(), 4, None)
    first, second = (filler.fill(task(), policies("default")[0]) for _ in range(2))
    assert first.prompt_passes == second.prompt_passes > 0
    assert first.text == second.text


def test_what_the_editor_would_show_passes_the_gate():
    one = task(truth="    return 2 * x", suffix="\n")
    model = scripted_model("    return 2 * x\n    return (((", len(build_prompt(tiny_model(), one.prefix, one.suffix)))
    shown = AsShown(Engine(model), 64).fill(one, policies("default")[0])
    assert shown.text.rstrip() == one.truth
    plain = AsShown(Engine(model), 64).fill(one, policies("autoregressive")[0])
    assert plain.text == shown.text
    assert plain.forwards == plain.tokens + 1 > shown.forwards  # the end token's pass, and none of the prompt's


def test_context_reaches_the_prompt():
    model = tiny_model(spec=replace(SPEC, context_tokens=100))
    with_context = task(context=(Snippet("other.py", "def other(): ..."),))
    filler = OwnText(model, 2, None)
    policy = policies("default")[0]
    assert filler.fill(with_context, policy).prompt_tokens > filler.fill(task(), policy).prompt_tokens
