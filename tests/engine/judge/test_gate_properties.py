"""What holds for every text: no exception, a prefix of the draft, and never a new syntax error."""

import ast
import sysconfig
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remask.contract.messages import Reason
from remask.engine.judge.compilers import python_parses
from remask.engine.judge.gate import Gate
from remask.grammars import grammar_for_language

PYTHON = grammar_for_language("python")
MARKS = [*"a1()[]{}:,=+.'#\\\n\té\x0c\r", '"""', "\n    ", "\n  "]
WORDS = ["def f(a):", "if a:", "else:", "try:", "except a:", "return ", "for x in y:", "class A:", "@a", "pass"]
PIECES = st.sampled_from(MARKS + WORDS)
TEXTS = st.lists(PIECES, max_size=12).map(" ".join) | st.lists(PIECES, max_size=12).map("".join)
STATEMENTS = st.lists(
    st.sampled_from(
        [
            "x = 1",
            "def f(a):\n    if a:\n        return (1,\n            2)\n    else:\n        pass",
            "class A:\n    '''doc'''\n\n    @a\n    def g(self): pass\n\n    def h(self):\n        return '(' # [",
            "if a: b = {1: 2}",
            "try:\n\tx\nexcept A:\n\ty",
            "for x in y:\n  f(x)\n",
            "s = '''\ndef no(\n'''",
        ]
    ),
    min_size=1,
    max_size=4,
).map("\n\n".join)


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_any_text_gets_a_verdict_that_is_a_prefix_of_the_draft(prefix, draft, suffix):
    verdict = Gate(PYTHON, prefix, suffix).check(draft)
    assert draft.startswith(verdict.text)
    assert (verdict.reason is None) == (verdict.text == draft)
    assert (verdict.reason is Reason.SYNTAX) == (verdict.text == "" != draft)
    assert verdict.detail.endswith(".")


@settings(max_examples=200, deadline=None)
@given(STATEMENTS, st.integers(0, 300), TEXTS)
def test_a_file_that_parses_goes_on_parsing(text, at, draft):
    prefix, suffix = text[:at], text[at:]
    verdict = Gate(PYTHON, prefix, suffix).check(draft)
    assert python_parses(prefix + verdict.text + suffix)


@settings(max_examples=100, deadline=None)
@given(STATEMENTS, st.integers(0, 300), st.integers(0, 60))
def test_what_was_there_is_taken(text, at, length):
    prefix, draft, suffix = text[:at], text[at : at + length], text[at + length :]
    assert Gate(PYTHON, prefix, suffix).check(draft).reason is None


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30), st.sampled_from(["javascript", "c", "rust"]))
def test_no_language_raises(prefix, draft, suffix, name):
    verdict = Gate(grammar_for_language(name), prefix, suffix).check(draft)
    assert draft.startswith(verdict.text)


@cache
def bodies():
    """Pieces of real functions: (file, text, start, end) with a whole line, or all from there to the function's end."""
    found = []
    for name in ("textwrap.py", "bisect.py", "queue.py", "shlex.py", "sched.py", "contextlib.py", "csv.py"):
        text = (Path(sysconfig.get_path("stdlib")) / name).read_text("utf-8")
        starts = [0]
        for line in text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[-1]
                found.append((text, starts[first.lineno - 1] + first.col_offset, starts[node.end_lineno] - 1))
    return found[::2]


def test_true_ends_of_real_functions_are_taken():
    assert len(bodies()) > 60
    for text, start, end in bodies():
        middle = (start + end) // 2
        for cursor in (start, middle):
            verdict = Gate(PYTHON, text[:cursor], text[end:]).check(text[cursor:end])
            assert verdict.reason is None, (text[cursor:end], verdict.detail)


@pytest.mark.parametrize("bracket", ["(", ")", "]"])
def test_an_extra_bracket_is_never_shown(bracket):
    for text, start, end in bodies()[::3]:
        draft = text[start:end]
        verdict = Gate(PYTHON, text[:start], text[end:]).check(draft[:3] + bracket + draft[3:])
        whole = text[:start] + verdict.text + text[end:]
        assert not verdict.text or python_parses(whole), verdict
