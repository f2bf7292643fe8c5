"""The white space at the start of lines: one home for all who ask."""

import pytest

from remask.grammars import grammar_for_language
from remask.grammars.indentation import indent_of, indent_unit, line_at, line_indent


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", "    "),
        ("x = 1\n", "    "),
        ("a\n  b\n", "  "),
        ("a\n\tb\n", "\t"),
        ("a\n        b\n", " " * 8),
        ("a\n b\n", "    "),
        ("        deep\n", " " * 8),
        ("class A:\n    def f(self):\n        return 1\n", "    "),
        ("func f() {\n\treturn\n}\n", "\t"),
    ],
)
def test_the_unit_of_indentation(text: str, unit: str) -> None:
    assert indent_unit(text) == unit


@pytest.mark.parametrize(
    "text",
    [
        'class A:\n    """Two\n      odd lines.\n    """\n    def f(self):\n        return 1\n',
        "/**\n * A comment.\n */\nint f() {\n    return 1;\n}\n",
        "x = g(1,\n      2)\nif x:\n    y()\n    if y:\n        z()\n",
    ],
)
def test_one_odd_line_does_not_change_what_a_level_of_indentation_is(text: str) -> None:
    assert indent_unit(text) == "    "


@pytest.mark.parametrize(
    ("language", "unit"), [("go", "\t"), ("python", "    "), ("typescriptreact", "  "), ("rust", "    ")]
)
def test_a_text_without_indentation_has_the_languages_own(language: str, unit: str) -> None:
    grammar = grammar_for_language(language)
    assert grammar is not None
    assert indent_unit("a\nb\n", grammar.text.indent) == unit
    assert indent_unit("a\n   b\n", grammar.text.indent) == "   "


def test_the_indentation_of_a_line() -> None:
    assert indent_of("\t x") == "\t "
    assert indent_of("    \f  x") == "  "
    assert indent_of("") == ""
    assert line_at("ab\n  cd", 4) == (3, 7)
    assert line_at("ab\n  cd", 2) == (0, 2)
    assert line_indent("ab\n  cd\n", 7) == "  "
