"""Drafts that once slipped past the gate, each with its kind."""

import ast

import pytest

from remask.contract.messages import Reason
from remask.engine.judge.finish import finish
from remask.engine.judge.gate import Gate
from remask.grammars import grammar_for_language

PYTHON = grammar_for_language("python")

NESTED = "class A:\n    class T:\n        def f(self):\n            print(1)\n"
BELOW = "\n        def b(self):\n            pass\n\n    suite = 1\n"


@pytest.mark.parametrize("draft", ["if x:", "def x(self):", "while True:", "        with x:"])
def test_a_file_that_parses_still_parses_when_the_break_lies_beyond_the_window(draft):
    """A header without a body takes over what stands below, and a dedent further down no longer fits."""
    ast.parse(NESTED + BELOW)
    kept = Gate(PYTHON, NESTED, BELOW).check(draft).text
    ast.parse(NESTED + kept + BELOW)


@pytest.mark.parametrize(
    ("prefix", "draft", "suffix"),
    [
        ('s = s.replace(")", ', "str(y)", ")\n"),
        ('print(":)", ', "f(x)", ")\n"),
        ('x = [c for c in "])" if c in ', "seen[0]", "]\n"),
        ("print('it)', ", "f(x)", ")\n"),
    ],
)
def test_closing_marks_inside_strings_are_not_counted_as_overlap(prefix, draft, suffix):
    finished = finish(draft, Reason.LINE, prefix, suffix, Gate(PYTHON, prefix, suffix))
    ast.parse(prefix + finished.text + suffix)
    assert finished.text == draft


@pytest.mark.parametrize(
    ("prefix", "draft", "suffix", "text"),
    [
        ("import os\n\n", "\nclass Item:", "import json\n", ""),
        ("import os\n", "import re\n", "import json\n", "import re\n"),
        ("x = f(", "a,\n  b", ")\n", "a,"),
    ],
)
def test_a_draft_never_runs_into_code_behind_the_cursor(prefix, draft, suffix, text):
    assert finish(draft, Reason.END, prefix, suffix, Gate(PYTHON, prefix, suffix)).text == text
