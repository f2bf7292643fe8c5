"""Functions and statements of a file, in code points."""

import pytest

from remask.engine.training.corpus.outline import outline
from remask.grammars.language import grammar_for_language

PYTHON = '''import os  # naïve café ☕


@cached
def first(a: int) -> int:
    """Doc ☕."""
    # why
    b = a + 1
    return b


class C:
    def method(self):
        return [
            1,
        ]

    async def only_doc(self):
        """Nothing else."""


def outer():
    def inner():
        return 1
    return inner
'''

BRACES = "int f(int a) {\n  int b = a;\n  return b;\n}\n\nint g(void) {}\n"


def shape_of(text, language):
    grammar = grammar_for_language(language)
    assert grammar is not None
    return outline(grammar, text)


def test_functions_from_decorator_to_last_statement():
    shape = shape_of(PYTHON, "python")
    heads = [PYTHON[f.start : f.start + 10].strip() for f in shape.functions]
    assert heads == ["@cached\nde", "def me", "async", "def outer(", "def in"]
    first = shape.functions[0]
    assert first.documented
    assert PYTHON[first.body :].startswith('"""Doc ☕."""')
    assert PYTHON[first.code : first.close].endswith("b = a + 1\n    return b")
    assert PYTHON[first.end - 8 : first.end] == "return b"


def test_a_function_of_a_docstring_alone_has_no_code():
    only = shape_of(PYTHON, "python").functions[2]
    assert only.code == only.close
    assert not only.documented


def test_statements_around_a_place_come_outermost_first():
    shape = shape_of(PYTHON, "python")
    outer = shape.functions[3]
    found = shape.statements_around(PYTHON.index("return 1\n    return"), outer)
    assert [PYTHON[a:b] for a, b in found] == ["def inner():\n        return 1", "return 1"]
    method = shape.functions[1]
    assert [PYTHON[a:b][:8] for a, b in shape.statements_around(PYTHON.index("1,\n"), method)] == ["return ["]


def test_braces_are_no_part_of_a_body():
    shape = shape_of(BRACES, "c")
    (function,) = shape.functions  # an empty body has nothing to fill in
    assert BRACES[function.body : function.close] == "int b = a;\n  return b;"
    assert BRACES[function.end - 1] == "}"


@pytest.mark.parametrize("text", ["", "x", "def f(:\n", "☕\n" * 3])
def test_any_text_has_an_outline(text):
    assert shape_of(text, "python").functions == ()
