"""How far a completion at the cursor (|) reaches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.contract.messages import Extent
from remask.grammars import grammar_for_language
from remask.grammars.regions import completion_extent

PYTHON = grammar_for_language("python")
JAVASCRIPT = grammar_for_language("javascript")


def at_cursor(text):
    prefix, _, suffix = text.partition("|")
    return prefix, suffix


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    |",
        "def f():|\n",
        "def f():\n|",
        "def f():\n    |\n    pass\n\nx",
        "def f():\n    |\n    ...\n",
        'def f():\n    """doc\n    more\n    """\n    |\n',
        "def f(\n    a,\n):  # why\n\n    |\n",
        "if a:\n    |\nelse:\n    b",
        "class A:\n    def g(self):\n        |\n\n    def h(self): pass",
        "x = (\n\ndef f():\n    |\n",
    ],
)
def test_an_opened_and_empty_block_is_filled(text):
    assert completion_extent(PYTHON, *at_cursor(text)) is Extent.BLOCK


@pytest.mark.parametrize(
    "text",
    [
        "",
        "|",
        "x = |",
        "x = f(|)",
        "x = f(|) + 1",
        "def f():\n    |\n    return 1",
        "def f():\n    |return 1",
        "for x in y:|  z",
        "d = {1:\n|}",
        "def f(\n    a,\n    |\n):",
        "if x:\n    a\n    |",
        'def f():\n    """doc"""\n\n|\n',
        'def f():\n    """doc|',
        "def f():\n    # note: |",
        "x = a[1:\n|",
    ],
)
def test_elsewhere_one_line_is_wanted(text):
    assert completion_extent(PYTHON, *at_cursor(text)) is Extent.LINE


@pytest.mark.parametrize(
    ("text", "extent"),
    [
        ("function f() {|}", Extent.BLOCK),
        ("function f() {\n  |\n}", Extent.BLOCK),
        ("function f() {\n  |", Extent.BLOCK),
        ("f(() => {\n  |\n});", Extent.BLOCK),
        ("function f() {\n  |\n  return 1;\n}", Extent.LINE),
        ("function f() {\n  x();\n  |\n}", Extent.LINE),
        ("f(\n  |\n)", Extent.LINE),
        ("x = |;", Extent.LINE),
    ],
)
def test_braces(text, extent):
    assert completion_extent(JAVASCRIPT, *at_cursor(text)) is extent


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from([PYTHON, JAVASCRIPT]))
def test_any_text_has_an_extent(prefix, suffix, grammar):
    assert completion_extent(grammar, prefix, suffix) in (Extent.LINE, Extent.BLOCK)
