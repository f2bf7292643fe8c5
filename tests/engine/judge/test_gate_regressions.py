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


CLASS = "class A:\n    x = 1\n\n"
NEXT = "\n    def g(self):\n        pass\n"


@pytest.mark.parametrize(
    ("text", "draft", "shown"),
    [
        ("def add(a, b):\n    return a + b\n\ndef sub(|):\n", "a, b):\n   ", "a, b"),
        ("def sub(|)\n", "a, b", "a, b"),
        ("def f(|) -> int:\n", "a, b) -> int:", "a, b"),
        (f"{CLASS}    def f(self|):\n{NEXT}", ", a):", ", a"),
        (f"{CLASS}    def f(self|):\n        \n{NEXT}", ", a):\n        self.a = a", ", a"),
        (f"{CLASS}    def f(self|):", ", a):", ", a"),
        ("class Foo(|):\n", "Bar):", "Bar"),
        ("while |:\n", "True:", "True"),
        ("while |:  # for ever\n", "True", "True"),
        ("if x == |:\n", "y", "y"),
        ("if a:\n    b\nelif f(|)\n\nd = 1\n", "c", "c"),
        ("for x in |:\n", "range(3):", "range(3)"),
        ("with open(|) as f:\n", "path, 'r') as f:", "path, 'r'"),
        ("def f(a):\n    if g(|)\n        x = 1\n", "a", "a"),
        ("def f(a):\n    b = c d\n    if g(|):\n\n    x = 1\n", "a", "a"),
        ("def f(a):\n    if g(|):\n\n    x = c d\n", "a", "a"),
        ("x = (\n\n\ndef sub(|):\n", "a, b):", "a, b"),
        ("def sub(|):\n", "a b):", ""),
        ("def f(a):\n    b = c d\n    if g(|):\n\n    x = 1\n", "a a", ""),
        ("def f(a):\n    b = g(|):\n\n    x = c d\n", "a a", ""),
        ("for x in |:\n", "range(3", ""),
        ("while |:\n", "", ""),
    ],
)
def test_a_header_whose_end_the_editor_wrote_may_still_wait_for_its_body(text, draft, shown):
    prefix, _, suffix = text.partition("|")
    assert finish(draft, Reason.LINE, prefix, suffix, Gate(PYTHON, prefix, suffix)).text == shown


@pytest.mark.parametrize(
    ("text", "draft", "shown"),
    [
        ("if (|) {\n", "a) {", "a"),
        ("function f(|) {\n", "a, b) {", "a, b"),
        ("function f(|)\n", "a, b", "a, b"),
        ("if (|) {\n", "a b) {", ""),
    ],
)
def test_so_may_one_whose_end_is_a_brace(text, draft, shown):
    prefix, _, suffix = text.partition("|")
    grammar = grammar_for_language("typescript")
    assert finish(draft, Reason.LINE, prefix, suffix, Gate(grammar, prefix, suffix)).text == shown


@pytest.mark.parametrize(
    ("language", "text", "draft", "shown"),
    [
        ("typescript", "console.log(`Hi ${|}`);\n", "name}!`);", "name"),
        ("typescript", "console.log(`Hi ${|}`);\n", "name}!\n`);", "name"),
        ("python", 's = f"Hi {|}"\n', 'name}!"', "name"),
        ("python", 'x = open(path, encoding="|")\n', 'utf-8").read()', "utf-8"),
        ("python", "x = open(|)\n", "f(path), 'r').read().x", "f(path), 'r'"),
        ("python", "x = f(|, b)\n", "g(a, c), b) + 1)", "g(a, c)"),
        ("python", "x = [|]\n", "f(a[0])\n]\ny = f(", "f(a[0])"),
        ("python", "def sub(|)\n", "a, b):\n    return a", "a, b"),
        ("python", "x = f(|)\n", "a b).c", ""),
        ("python", "print(|)\n", "str(a)", "str(a)"),
    ],
)
def test_a_draft_that_runs_past_what_stands_behind_the_cursor_is_cut_there(language, text, draft, shown):
    prefix, _, suffix = text.partition("|")
    gate = Gate(grammar_for_language(language), prefix, suffix)
    assert finish(draft, Reason.LINE, prefix, suffix, gate).text == shown


CHOICE = '1 : 0) + " " + (ok ?'


@pytest.mark.parametrize("ended", [Reason.LINE, Reason.BUDGET])
@pytest.mark.parametrize(
    ("language", "text", "draft", "shown"),
    [
        ("typescript", 'function f(ok) { return "x" + (ok ? |); }\n', CHOICE, "1 : 0"),
        ("javascript", 'function f(ok) {\n  return "x" + (ok ? |); }\n', CHOICE, "1 : 0"),
        ("javascript", 'class A {\n  f(ok) {\n    return "x" + (ok ? |);\n  }\n', CHOICE, "1 : 0"),
        ("javascript", 'class A {\n  g(a b) {}\n  f(ok) { return "x" + (ok ? |); }\n}\n', CHOICE, "1 : 0"),
        ("javascript", 'class A {\n  f(ok) {\n    return "x" + (ok ? |);\n  }\n', "1 + ok ?", ""),
        ("typescript", "x = (|); }\n", "ok ?", ""),
        ("typescript", "x = (|); }\n", "ok", "ok"),
        ("c", "int x = g |));\n", "(1", ""),
        ("javascript", "const x = [|]\n", "1, 2, 3], c: [4, 5", "1, 2, 3"),
        ("python", "def f():\n    x = [|]\n    y = a b\n", "1, 2, 3], c: [4, 5", "1, 2, 3"),
    ],
)
def test_a_draft_never_leaves_what_stands_behind_the_cursor_without_a_start(language, text, draft, shown, ended):
    """An error that stood there before, since the hole was empty, is the draft's own if it stays."""
    prefix, _, suffix = text.partition("|")
    gate = Gate(grammar_for_language(language), prefix, suffix)
    assert finish(draft, ended, prefix, suffix, gate).text == shown


@pytest.mark.parametrize("ended", [Reason.BUDGET, Reason.DEADLINE])
@pytest.mark.parametrize(
    ("language", "text", "draft", "shown"),
    [
        ("python", "x = {'a': [1], 'b': [|]}\n", "1, 2, 3], 'c': [4, 5", "1, 2, 3"),
        ("javascript", "const x = {a: [1], b: [|]};\n", "1, 2, 3], c: [4, 5", "1, 2, 3"),
        ("python", "f(\n    a,\n    |\n\n\ndef g():\n    pass\n", "b, c=[1, 2], d.e +", "b, c=[1, 2],"),
        ("python", "f(\n    a,\n    |\n\n\ndef g():\n    pass\n", "b +", ""),
        ("python", "f(\n    a,\n    |\n\n\ndef g():\n    pass\n", "b,", "b,"),
        ("python", "def f():\n    y = |\n    z = a b\n", "g(1) +", ""),
        ("python", "def f():\n    y = |\n    z = a b\n", "g(1)", "g(1)"),
        ("python", "x = (\n    # see |\n", "below for mo", "below for mo"),
        ("python", "def f|\n\n\nx = 1\n", "(a, b):", "(a, b):"),
        ("javascript", "function f() {\n  |\n  let a b;\n}\n", "g(1); h(2", "g(1);"),
        ("javascript", "function f() {\n  |\n  let a b;\n}\n", "g(1) + ", ""),
    ],
)
def test_a_draft_that_was_stopped_ends_with_something_whole(language, text, draft, shown, ended):
    prefix, _, suffix = text.partition("|")
    gate = Gate(grammar_for_language(language), prefix, suffix)
    assert finish(draft, ended, prefix, suffix, gate).text == shown
