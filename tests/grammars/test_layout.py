"""What tree-sitter takes and Python does not."""

import ast
import sysconfig
import warnings
from pathlib import Path

import pytest

from remask.grammars import grammar_for_language
from remask.grammars.layout import layout_errors

PYTHON = grammar_for_language("python")


def errors(text):
    source = text.encode()
    return sorted(e.offset for e in layout_errors(PYTHON.parse(source).root_node, source))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("if a:\n    b\n        c\n", "c"),
        ("if a:\n    b\n   c\n", "c"),
        ("  a\n", "a"),
        ("a\n  b\n", "b"),
        ("if a: b\n    c\n", "c"),
        ("if a:\n    b\n  else:\n    c\n", "else"),
        ("try:\n    a\n except b:\n    c\n", "except"),
        ("for a in b:\n    c\n  else:\n    d\n", "else"),
        ("@a\n  def f(): pass\n", "def"),
        ("if a:\n    if b:\n        c\n      d\n", "d"),
        ("if a:\n\tb\n        c\n", "c"),
        ("with a:\n    b\n  # c\n  d\n", "d"),
    ],
)
def test_a_line_at_a_wrong_column(text, at):
    found = errors(text)
    assert found
    assert text[found[0] :].startswith(at)
    with pytest.raises(SyntaxError):
        ast.parse(text)


@pytest.mark.parametrize(
    "text", ["def f():\nx = 1\n", "if a:\n", "class A:\n    # only a comment\nx\n", "while a:\n\n\nb\n"]
)
def test_a_block_with_nothing_in_it(text):
    assert errors(text)


@pytest.mark.parametrize(
    "text",
    [
        "if a: b; c\n",
        "if a:\n        b\nelse:\n  c\n",
        "if a:\n    b\n# comment\n    c\n",
        "if a:\n  # comment\n    b\n",
        "if a:\n\tb\n\tc\n",
        "x = (\n  1,\n    2)\n",
        "f(a,\nb)\n",
        "if a:\n    x = '''\ny\n'''\n    z\n",
        "if a: b\nelse: c\n",
        "try: a\nexcept b: c\nelse: d\nfinally: e\n",
        "@a\n# c\n@b\ndef f(): pass\n",
        "async def f():\n    async with a:\n        b\n",
        "match a:\n    case 1: b\n    case _:\n        c\n",
        "if a:\n    b\n\x0c\nc\n",
        "\x0cclass A:\n    pass\n",
        "if a: \\\n  b\n",
        "if a:\n    # ends in \\\n    b\n    c\n",
        "if a: b;\\\n  c\n",
        "for a in b:\n    if c: d\n    else: e\nelse: f\n",
        "lambda: 1\n",
        "",
    ],
)
def test_good_layout_has_no_error(text):
    ast.parse(text)
    assert errors(text) == []


def test_only_what_touches_the_range_counts():
    text = "if a:\n    b\n   c\n\n\nif d:\n    e\n      f\n"
    source = text.encode()
    root = PYTHON.parse(source).root_node
    assert len(list(layout_errors(root, source))) == 2
    assert [e.offset for e in layout_errors(root.children[-1], source, text.index("if d"))] == [text.index("f\n", 30)]


def test_no_false_alarm_in_the_standard_library():
    files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    files = [f for f in files if "site-packages" not in f.parts and 500 < f.stat().st_size < 40_000][::3][:200]
    assert len(files) > 100
    for file in files:
        source = file.read_bytes()
        root = PYTHON.parse(source).root_node
        if not root.has_error and parses(source):
            assert list(layout_errors(root, source)) == [], file.name


def parses(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except SyntaxError:
            return False
        return True
