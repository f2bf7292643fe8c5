"""The part of a file in which a draft is judged: | is the cursor."""

import pytest

from remask.engine.judge.window import window
from remask.grammars import grammar_for_language

PYTHON = grammar_for_language("python")
JAVASCRIPT = grammar_for_language("javascript")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("|", "|"),
        (
            "import a\n\n\ndef f(x):\n    y = |\n    z\n\n\ndef g():\n    pass\n",
            "def f(x):\n    y = |\n    z\n\n\npass\n",
        ),
        ("@d\n@e(\n  1)\ndef f(x):\n    |\n", "@d\n@e(\n  1)\ndef f(x):\n    |\n"),
        (
            "class A:\n    a = 1\n\n    def f(self):\n        if x:\n            b(|\n\n    def g(self): pass\n",
            "class _:\n    def f(self):\n        if x:\n            b(|\n\n    pass\n",
        ),
        (
            "if a:\n    class B:\n        def f(self):\n            |\n    x = 1\n",
            "class _:\n    class _:\n        def f(self):\n            |\n    pass\n",
        ),
        ("def f():\n    def g():\n        |\n    h\nx\n", "def f():\n    def g():\n        |\n    h\npass\n"),
        ("x = 1\nif x:\n    y\nelse:\n    |\nz", "if x:\n    y\nelse:\n    |\npass\n"),
        ("try:\n    |\nexcept A:\n    b\nc\n", "try:\n    |\nexcept A:\n    b\npass\n"),
        ("def f():\n    x = (|\n\n@d\ndef g(): pass\n", "def f():\n    x = (|\n\npass\n"),
        ("def f():\n    '''\ndef no():\n    '''\n    |\n", "def f():\n    '''\ndef no():\n    '''\n    |\n"),
    ],
)
def test_window(text, expected):
    prefix, _, suffix = text.partition("|")
    assert window(PYTHON, prefix, suffix).text("|") == expected


def test_the_cursor_and_the_rest_of_its_line():
    found = window(PYTHON, "a = 1\nif a:\n    f(", ")\nb")
    assert found.text("")[: found.cursor] == "if a:\n    f("
    assert found.rest == ")"


def test_braces():
    found = window(JAVASCRIPT, "let a = 1;\nfunction f()\n{\n  x(", ");\n}\n\nfunction g() {\n}\n")
    assert found.text("|") == "function f()\n{\n  x(|);\n}\n\n"
