"""Where a draft may end: what the gate would not show whole goes on, and true code never has to."""

import pytest

from remask.contract.messages import Reason
from remask.engine.judge.ending import Ending
from remask.engine.judge.gate import Gate
from remask.grammars import grammar_for_language


def objection(draft, prefix, suffix, language="python", reason=Reason.END):
    return Ending(Gate(grammar_for_language(language), prefix, suffix), prefix, suffix).objection(draft, reason)


@pytest.mark.parametrize(
    ("draft", "prefix", "suffix", "language"),
    [
        ("if x:", "def f(x):\n    y = 1\n    ", "\n    return y\n", "python"),
        ("def g():\n", "x = 1\n", "y = 2\n", "python"),
        ("y = f(x,", "x = 1\n", "\nz = 2\n", "python"),
        ("export(to, from", "const to = 1;\n__", "\nmodule.exports = to;\n", "javascript"),
    ],
)
def test_an_unfinished_draft_may_not_end(draft, prefix, suffix, language):
    assert objection(draft, prefix, suffix, language)


@pytest.mark.parametrize(
    ("draft", "prefix", "suffix"),
    [
        ("y = f(x)", "x = 1\n", "\nz = 2\n"),
        ("if x:\n        y = 2", "def f(x):\n    y = 1\n    ", "\n    return y\n"),
        ("x)", "print(", ")\n"),  # the closing mark stands behind the cursor already
        ("", "x = 1\n", "y = 2\n"),
        ("   \n", "x = (1\n", "y = 2\n"),
    ],
)
def test_a_whole_draft_and_an_empty_one_may(draft, prefix, suffix):
    assert objection(draft, prefix, suffix) == ""


def test_what_follows_the_last_whole_line_of_a_cut_off_draft_does_not_count():
    assert objection("y = 2\nz = f(", "x = 1\n", "\nw = 3\n", reason=Reason.BUDGET) == ""


def test_the_gate_judges_a_draft_once(monkeypatch):
    gate = Gate(grammar_for_language("python"), "x = 1\n", "\nz = 2\n")
    assert Ending(gate, gate.prefix, gate.suffix).objection("y = 2", Reason.END) == ""

    def parse(*_):
        raise AssertionError("judged already")

    monkeypatch.setattr("remask.engine.judge.gate.parses", parse)
    assert gate.check("y = 2").reason is None
