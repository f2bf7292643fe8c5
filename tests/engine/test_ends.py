"""Where a hole's text ends, as the request, its surroundings and the checkpoint's layout want it."""

from dataclasses import replace

import pytest
from tiny import SPEC

from remask.contract.messages import CompletionRequest, Extent, Reason
from remask.engine.ends import stop_rules
from remask.engine.models.spec import Layout
from remask.grammars import grammar_for_language

PYTHON = grammar_for_language("python")


def ended(text, prefix="", suffix="", *, grammar=PYTHON, spec=SPEC, extent=Extent.AUTO):
    """What is kept of a text, and why; None while it goes on."""
    request = CompletionRequest(document="a.py", language="python", prefix=prefix, suffix=suffix, extent=extent)
    stop = stop_rules(grammar, request, spec).check(text)
    return None if stop is None else (text[: stop.length], stop.reason)


@pytest.mark.parametrize(
    ("text", "prefix", "suffix", "end"),
    [
        ("(1,\n2)\n", "x = f", "\n", ("(1,\n2)", Reason.LINE)),  # a statement, however many lines it has
        ("(1,\n", "x = f", "\n", None),
        ("a\nb", "f(", ", c)\n", ("a", Reason.LINE)),  # code follows on the line
        ("y = 1\n    return y\nz", "def f():\n    ", "\n", ("y = 1\n    return y\n", Reason.BLOCK)),
        ("y = 1\n", "def f():\n    ", "\n", None),
    ],
)
def test_the_text_around_the_cursor_says_how_much_is_wanted(text, prefix, suffix, end):
    assert ended(text, prefix, suffix) == end


def test_the_request_says_it_first():
    assert ended("y = 1\n", "def f():\n    ", "\n", extent=Extent.LINE) == ("y = 1", Reason.LINE)
    assert ended("x = 1\n", "if a:\n    b\n    ", "\n", extent=Extent.BLOCK) is None


def test_without_a_grammar_it_is_the_first_line_that_holds_something():
    assert ended("\nx = (\n", grammar=None) == ("\nx = (", Reason.LINE)


@pytest.mark.parametrize("layout", [Layout.CHAT, Layout.SUFFIX_PREFIX])
def test_a_reply_ends_with_its_code_block_too(layout):
    end = ended("x = (\n```\n", "", "\n", spec=replace(SPEC, layout=layout))
    assert end == (("x = (", Reason.END) if layout is Layout.CHAT else None)
