"""Where a draft leaves its block or its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.grammars import grammar_for_language
from remask.grammars.blocks import block_end, line_end, statement_end

PYTHON = grammar_for_language("python")
JAVASCRIPT = grammar_for_language("javascript")


@pytest.mark.parametrize(
    ("prefix", "inside", "after"),
    [
        ("def f():\n    ", "x = 1\n    y\n", "z"),
        ("def f():\n", "    x = 1\n\n    y\n", "# c\nz"),
        ("def f():", "\n    x = 1\n    y\n", "z"),
        ("def f():\n    ", "\n    x\n", "y"),
        ("def f():\n    ", "x = '''\nabc\n'''\n    y(\n1\n)\n", "  z"),
        ("def f():\n    foo(", "a,\nb)\n    y\n", "z"),
        ("def f():\n    foo(\n  a,\n  ", "b,\n)\n    y\n", "z"),
        ('def f():\n    """abc\n', 'def\n"""\n    return 1\n', "x"),
        ("def f():\n    ", "foo(a\n\n    return x\n", "y"),
        ("def f():\n    x = 1", "\n    y\n", "z"),
        ("class A:\n    x = 1\n", "\n    y = 2\n", "z"),
        ("class A:\n    ", "def f(self):\n        x\n    y\n", "z"),
        ("if a:\n    ", "b\n", "else:\n    c"),
        ("if a:\n\t", "b\n\tc\n", "d"),
        ("def f():\n", "", "x = 1"),
        ("def f():\n    x = 1 + \\\n", "2\n    y\n", "z"),
        ("if a:  # why\n    ", "b\n", "c"),
    ],
)
def test_python_block(prefix, inside, after):
    assert block_end(PYTHON, prefix, inside + after) == len(inside)
    assert block_end(PYTHON, prefix, inside) is None


@pytest.mark.parametrize(
    ("prefix", "inside", "after"),
    [
        ("function f() {\n  ", "x();\n  if (a) { b(); }\n", "}\n"),
        ("function f() {", " x(); ", "}"),
        ("f(a, {\n  ", "b: [1, 2],\n", "});"),
        ("function f() {\n  g(", "a);\n  '}'; `}\n}`; // }\n  /* } */ h(/[}]/);\n", "}"),
        ("if (a) {\n  // }", " more }\n  b();\n", "} else {"),
        ("x(", "a)\n", "}"),
    ],
)
def test_brace_block(prefix, inside, after):
    assert block_end(JAVASCRIPT, prefix, inside + after) == len(inside)
    assert block_end(JAVASCRIPT, prefix, inside) is None


@pytest.mark.parametrize(
    ("prefix", "line", "after"),
    [
        ("x = ", "1", "\ny"),
        ("x = 1", "", "\ny"),
        ("", "\nx = 1", "\ny"),
        ("x = ", "f(\n  1,\n)", "\ny"),
        ("f(\n  a,\n  ", "b,", "\n  c"),
        ("x = ", "'''\n'''", "\ny"),
        ("x = ", "1 + \\\n  2", "\ny"),
        ("x = ", "'# ('  # (", "\ny"),
        ("def f():", "\n    x", "\n    y"),
        ("'''a", "b'''", "\ny"),
    ],
)
def test_line_end(prefix, line, after):
    assert line_end(PYTHON, prefix, line + after) == len(line)
    assert line_end(PYTHON, prefix, line) is None


@pytest.mark.parametrize(
    ("prefix", "statement", "after"),
    [
        ("    ", "x = 1", "\n    y\n"),
        ("    ", "for x in y:\n        f(x)", "\n\n    z\n"),
        ("    for x", " in y:\n        f(x)\n\n        g(x)", "\n    z"),
        ("", "if a:\n    b\nelse:\n    c", "\nd"),
        ("", "try:\n    b\nexcept A:\n    c\nfinally: d", "\n@e"),
        ("", "x = f(\n  1)", "\ny"),
    ],
)
def test_statement_end(prefix, statement, after):
    assert statement_end(PYTHON, prefix, statement + after) == len(statement)
    assert statement_end(PYTHON, prefix, statement) is None


def test_a_statement_in_braces_ends_with_its_block():
    statement = "if (a) {\n  b();\n} else {\n  c();\n}"
    assert statement_end(JAVASCRIPT, "", statement + "\nd();") == len(statement)


texts = st.text(alphabet="ab:(){}'\"\\#\n ", max_size=40)


@given(texts, texts, st.sampled_from([PYTHON, JAVASCRIPT]))
def test_an_end_lies_in_the_draft_and_does_not_move_when_the_draft_grows(prefix, draft, grammar):
    for rule in (block_end, line_end, statement_end):
        whole = rule(grammar, prefix, draft)
        if whole is not None:
            assert 0 <= whole < len(draft)
            assert rule(grammar, prefix, draft + "\nx = 1") == whole
