"""What may be shown: | is the cursor, and the draft goes there."""

import time
import warnings

import pytest

from remask.contract.messages import Reason
from remask.engine.judge.gate import MAX_DEPTH, Gate
from remask.grammars import GrammarError, grammar_for_language, load_grammar

PYTHON = grammar_for_language("python")
C = grammar_for_language("c")


def check(text, draft, grammar=PYTHON):
    prefix, _, suffix = text.partition("|")
    return Gate(grammar, prefix, suffix).check(draft)


HOLDS = {
    "a line in a valid file": ("def f(a):\n    return |\n", "a + 1"),
    "a body": ("def f(a):\n    |\n\n\ndef g():\n    pass\n", "b = a\n    if b:\n        return 1\n    return 2"),
    "a clause": ("if a:\n    b\n|\n", "else:\n    c"),
    "an argument": ("f(|)\n", "a, b=1"),
    "nothing": ("x = (|", ""),
    "a line, with an error in another function": ("x = (\n\n\ndef g():\n    |\n\n\ndef h():\n    pass\n", "return 1"),
    "a line, with an error above": ("def g():\n    x = a +\n    y = |\n    return y\n", "b(1)"),
    "a line, with an open bracket above": ("def g():\n    x = f(1\n    y = |\n    return y\n", "b(1)"),
    "a line, with an error below": ("def g():\n    y = |\n    z = a b\n    return y\n", "b(1)"),
    "a header that was being typed": ("def f|\n\n\nx = 1\n", "(a, b):"),
    "a header above its body": ("def f(self):\n    if |\n        self.y = 2\n", "self.x:"),
    "a header at the end of the file": ("for |", "x in y:"),
    "a decorator": ("@prop|", "erty"),
    "an item of an open list": ("f(\n    a,\n    |\n\n\ndef g():\n    pass\n", "b,"),
    "a part of a list that goes on, with an error below": ("f(\n    a=|\n    b=1,\n    c d,\n)\n", "0,"),
    "a condition whose colon is still to come": ("def f(a):\n    if g(|)\n    x = 1\n", "a"),
    "a line in an open try": ("try:\n    x = |\n", "f()"),
    "the end of a string": ("x = 'abc|", "def'"),
    "a line of an open docstring": ('def f():\n    """Some|\n\n\nx = 1\n', " more text."),
    "the end of a docstring": ('def f():\n    """Some|\n\n\nx = 1\n', ' text."""'),
    "a comment": ("x = (\n    # see |\n", "below"),
    "a comment in an open block": ("for x in y:\n    |\n\nz = 1\n", "# nothing yet"),
    "text of other alphabets": ("é = '日本'\nx = |\n", "'😀' + é"),
    "Python 2, as everything else there": ("print 'a'\n\n\ndef f():\n    x = |\n    return x\n", "1"),
}


@pytest.mark.parametrize(("text", "draft"), HOLDS.values(), ids=HOLDS)
def test_holds(text, draft):
    verdict = check(text, draft)
    assert (verdict.text, verdict.reason) == (draft, None)


REFUSED = {
    "an open bracket in a valid file": ("def f(a):\n    return |\n", "f(a"),
    "an open bracket where a statement was begun": ("x = |\n", "f(a"),
    "an extra bracket": ("x = |\n", "f(a))"),
    "an open string": ("x = |\n", "'abc"),
    "an open docstring": ("def f():\n    |\n", '"""abc'),
    "two names": ("x = |\ny = 1\n", "a b"),
    "a header without its body in a valid file": ("def f():\n    |\n    return 1\n", "for x in y:"),
    "what the parser takes and Python does not": ("x = |\n", "f(a=1, b)"),
    "a keyword as a name": ("|\n", "class = 1"),
    "a stray clause": ("def f():\n    |\n    return 1\n", "else: pass"),
    "two names, with an error in another function": (
        "x = (\n\n\ndef g():\n    |\n\n\ndef h():\n    pass\n",
        "return 1 2",
    ),
    "two names, with an error above": ("def g():\n    x = a +\n    y = |\n    return y\n", "b 1"),
    "an open bracket, with an error above": ("def g():\n    x = a +\n    y = |\n    return y\n", "b(1"),
    "a header with an error": ("def f|\n\n\nx = 1\n", "(a b):"),
    "a header above a line that is no body": ("def f(self):\n    x = |\n        self.y = 2\n", "1"),
    "two names in a condition": ("def f(a):\n    if g(|)\n    x = 1\n", "a b"),
    "half of a closing quote": ('def f():\n    """Some|\n\n\nx = 1\n', ' text.""'),
    "a string that must end on its line": ("f('a|\n", " b, c"),
    "a NUL": ("x = |\n", "'\x00'"),
    "a lone surrogate": ("x = |\n", "'\ud800'"),
    "a return typed as a line end": ("x = |\n", "1\rif"),
}


@pytest.mark.parametrize(("text", "draft"), REFUSED.values(), ids=REFUSED)
def test_refused(text, draft):
    verdict = check(text, draft)
    assert (verdict.text, verdict.reason) == ("", Reason.SYNTAX)
    assert verdict.detail.endswith(".")


CUT = {
    "at the last whole statement": ("def f(a):\n    |\n", "x = 1", "\n    return (a"),
    "in the middle": ("def f(a):\n    |\n", "x = 1\n    y = 2", "\n    z = a b\n    return x"),
    "at a semicolon": ("|\n", "a = 1", "; b = ("),
    "before a wrong column": ("def f():\n    |\n\n\nx = 1\n", "a = 1", "\n   b = 2"),
    "before a header and its broken body": (
        "def f():\n    |\n    return 1\n",
        "a = 1",
        "\n    for x in y:\n        z(",
    ),
    "after a nested block": ("def f():\n    |\n", "if a:\n        b", "\n    else c"),
    "with an error elsewhere": ("x = (\n\n\ndef g():\n    |\n\n\ndef h():\n    pass\n", "a = 1", "\n    b = = 2"),
    "before a NUL": ("|\n", "a = 1", "\nb = '\x00'"),
    "a whole string over lines": ("x = |\n", "'''a\nb'''", "\ny = ("),
}


@pytest.mark.parametrize(("text", "kept", "lost"), CUT.values(), ids=CUT)
def test_cut(text, kept, lost):
    verdict = check(text, kept + lost)
    assert (verdict.text, verdict.reason) == (kept, Reason.CUT)
    assert f"after {len(kept)} characters" in verdict.detail


def test_a_long_draft_is_cut_far_back_within_few_tries():
    good = "\n".join(f"    a{n} = {n}" for n in range(100)).lstrip()
    bad = "\n".join("    b c" for _ in range(100))
    assert check("def f():\n    |\n", f"{good}\n{bad}").text == good


def test_one_gate_judges_many_drafts():
    gate = Gate(PYTHON, "def f():\n    x = ", "\n    return x\n")
    assert [gate.check(d).reason for d in ("1", "(", "[2]", "a b", "1")] == [
        None,
        Reason.SYNTAX,
        None,
        Reason.SYNTAX,
        None,
    ]


@pytest.mark.parametrize(
    ("text", "draft", "holds"),
    [
        ("MACRO(int)\n\nint f(int a) {\n    return |\n}\n", "a;", True),
        ("MACRO(int)\n\nint f(int a) {\n    return |\n}\n", "g(a;", False),
        ("BEGIN {\n\nint f(int a) {\n    int b = |\n    return b;\n}\n", "g(a);", True),
        ("#if A\nint f(int a) {\n#else\nint f(long a) {\n#endif\n    int b = |\n    return b;\n}\n", "a;", True),
        ("#if A\nint f(int a) {\n#else\nint f(long a) {\n#endif\n    int b = |\n    return b;\n}\n", "a a;", False),
    ],
)
def test_errors_that_macros_bring_do_not_count(text, draft, holds):
    assert (check(text, draft, C).reason is None) is holds


def test_a_comment_that_ends_below_takes_any_text():
    text = "BEGIN {\n/* (c)\n   |\n   Someone */\nint a;\n"
    assert check(text, "It's free\n   {and} open,", C).reason is None


def test_warnings_of_the_judged_text_are_not_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check("x = |\n", r"'\d'").reason is None


@pytest.mark.parametrize(
    ("prefix", "draft"),
    [
        ("(" * 50_000, "a)"),
        ("x = 1\n" + "[{(" * 20_000, "a"),
        ("x = ", "(" * 50_000),
        ("x = ", "-" * 100_000 + "1"),
        ("x = ", "not " * 30_000 + "1"),
        ("x = ", "a" + ".b" * 50_000),
        ("", "\n".join(" " * n + "if a:" for n in range(300))),
    ],
)
def test_a_pathological_text_is_refused_in_bounded_time(prefix, draft):
    start = time.perf_counter()
    assert check(f"{prefix}|", draft).reason is not None
    assert time.perf_counter() - start < 5


def test_deep_code_in_another_function_does_not_matter():
    assert check(f"x = {'(' * 40_000}\n\n\ndef f():\n    |\n", "return 1").reason is None


def test_nesting_up_to_the_limit_is_judged():
    assert check("x = |\n", "[" * 90 + "]" * 90).reason is None
    assert check("x = |\n", "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)).reason is Reason.SYNTAX


def test_a_file_of_two_megabytes_is_judged_by_its_window():
    text = "def f(a):\n    return a\n\n\n" * 80_000
    assert check(f"{text}def g(a):\n    return |\n\n\n{text[:1000]}", "a + 1").reason is None
    assert check(f"{text}def g(a):\n    return |\n\n\n{text[:1000]}", "a +").reason is Reason.SYNTAX


def test_after_the_deadline_nothing_is_cut():
    gate = Gate(PYTHON, "def f():\n    ", "\n", deadline_ms=0)
    assert gate.check("a = 1\n    b = (").reason is Reason.DEADLINE
    assert gate.check("b = (").reason is Reason.SYNTAX, "there was nothing to cut"


def test_a_parser_that_cannot_be_loaded_is_told_at_once():
    from importlib import resources

    text = resources.files("remask.grammars").joinpath("python.toml").read_text("utf-8")
    grammar = load_grammar(text.replace("tree_sitter_python", "tree_sitter_nowhere"), "python.toml")
    with pytest.raises(GrammarError, match="tree_sitter_nowhere"):
        Gate(grammar, "", "")
