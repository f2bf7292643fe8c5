"""Places in a body where code is missing. A `|` marks the cursor."""

from __future__ import annotations

import pytest
from stubs_in import grammar_of, stub_in

from remask.lsp_server.fillcheck import objection

HERE = [
    ("python", "def f(a):\n    b = a\n|\n    return b\n", "b += 1", "a\n    b += 1\n    r"),
    ("python", "def f(a):\n    b = a\n    # TODO| more\n    return b\n", "b += 1", "more\n    b += 1\n"),
    ("python", "def f(a):\n    if a:\n        pass|\n    return a\n", "a += 1", "a:\n        a += 1\n"),
    ("rust", "fn f(a: i32) -> i32 {\n    let b = a;\n    |todo!();\n    b\n}\n", "let c = 1;", "    let c = 1;\n    b"),
    ("go", "package a\n\nfunc f() int {\n\tb := 1\n\t// FIXME|\n\treturn b\n}\n", "b++", "FIXME\n\tb++\n"),
]


NOT_HERE = [
    ("python", 'def f():\n    x = """\n|\n    pass\n    # TODO\n    """\n    return x\n'),
    ("python", 'def f():\n    x = """\n\n    pass|\n    # TODO\n    """\n    return x\n'),
    ("python", 'def f():\n    x = """\n\n    pass\n    # TODO|\n    """\n    return x\n'),
    ("python", 'def f(a):\n    """One.\n|\n    More.\n    """\n    x = a\n    return x\n'),
    ("python", "def f():\n    x = g(\n        1,\n|\n        # TODO\n    )\n    return x\n"),
    ("python", "def f():\n    x = g(\n        1,\n\n        # TODO|\n    )\n    return x\n"),
    ("python", "def f():\n    x = g(\n        ...|\n    )\n    return x\n"),
    ("python", "def f():\n    x = [\n        1,\n|\n    ]\n    return x\n"),
    ("javascript", "function f() {\n  const x = `\n|\n  // TODO\n`;\n  return x;\n}\n"),
    ("javascript", "function f() {\n  g(1,\n|\n    2);\n  return x;\n}\n"),
    ("javascript", "function f() {\n  g({\n    a: 1,\n    // TODO|\n  });\n  return x;\n}\n"),
    ("go", "package a\n\nfunc f() {\n\tg(1,\n|\n\t\t2)\n\th()\n}\n"),
    ("rust", "fn f() {\n    g(1,\n|\n        2);\n    h();\n}\n"),
    ("java", "class A {\n  void f() {\n    g(1,\n|\n      2);\n    h();\n  }\n}\n"),
    ("c", "int f(int a) {\n  g(1,\n|\n    2);\n  return a;\n}\n"),
]
AND_HERE = [
    ("python", "def f(a):\n    if a:\n|\n        b = 1\n    return a\n"),
    ("python", "def f(a):\n    if a:\n        # TODO|\n        b = 1\n    return a\n"),
    ("python", "def f(a):\n    if a:\n        b = 1\n|\n    return a\n"),
    ("javascript", "function f() {\n  g();\n|\n  h();\n}\n"),
    ("javascript", "function f() {\n  g();\n  // TODO|\n}\n"),
    ("typescript", "class A { m() {\n  g();\n|\n} }\n"),
    ("go", "package a\n\nfunc f() {\n\tg()\n|\n\th()\n}\n"),
    ("go", "package a\n\nfunc f() {\n\tg()\n\t// TODO|\n}\n"),
    ("rust", "fn f() {\n    g();\n|\n    h();\n}\n"),
    ("java", "class A {\n  void f() {\n    g();\n    // TODO|\n    h();\n  }\n}\n"),
    ("java", "class A {\n  A() {\n    g();\n|\n    h();\n  }\n}\n"),
    ("c", "int f(int a) {\n  switch (a) {\n    case 1:\n      g();\n|\n      h();\n  }\n  return a;\n}\n"),
    ("cpp", "int f(int a) {\n  g();\n|\n  return a;\n}\n"),
]


# Comments and blank lines at the edges of a body, which Python's parser keeps out of its block.
MEAN = "def f(xs):\n    # TODO: check{0}\n    t = sum(xs)\n    # TODO: mean{1}\n    {2}\n\ndef g():\n    return 1\n"
METHOD = "class A:\n\tdef f(self):\n\t\t{0}\n\t\t# TODO: a{1}\n\t\tx = 1\n\t\t{2}\n\n\tdef g(self):\n\t\treturn 1\n"
NESTED = "def f(a):\n    def g(b):\n        # TODO{0}\n        x = b\n        # TODO{1}\n    {2}\n\nx = 1\n"
EDGES = [
    (MEAN, 0, "check\n    if xs:\n        y()\n    t = "),
    (MEAN, 1, "mean\n    if xs:\n        y()\n    \n\ndef g"),
    (MEAN, 2, "mean\n    if xs:\n        y()\n\ndef g"),
    (METHOD, 0, "self):\n\t\tif xs:\n\t\t\ty()\n\t\t# TODO"),
    (METHOD, 1, "a\n\t\tif xs:\n\t\t\ty()\n\t\tx = 1"),
    (METHOD, 2, "x = 1\n\t\tif xs:\n\t\t\ty()\n\n\tdef"),
    (NESTED, 0, "TODO\n        if xs:\n            y()\n        x = b"),
    (NESTED, 1, "x = b\n        # TODO\n        if xs:\n            y()\n"),
    (NESTED, 2, "TODO\n    if xs:\n        y()\n\nx = 1"),
    ("def f(a):\n    return g(a)\n    # TODO{0}\n", 0, "TODO\n    if xs:\n        y()\n"),
    ("def f(a):\n    return g(a)\n\n    # TODO{0}\n\n\nx = 1", 0, "TODO\n    if xs:\n        y()\n\n"),
    ("def f(a):\n{0}\n    return g(a)\n", 0, "a):\n    if xs:\n        y()\n    return"),
    ("def f(a):\n    return g(a)\n    {0}", 0, "g(a)\n    if xs:\n        y()"),
]


@pytest.mark.parametrize(("template", "at", "expected"), EDGES)
def test_a_hole_at_the_edge_of_a_body_is_found_and_filled(template: str, at: int, expected: str) -> None:
    marked = template.format(*("|" if number == at else "" for number in range(3)))
    text, stub = stub_in("python", marked, whole=False)
    assert stub is not None
    indent = stub.around(text)[0].rpartition("\n")[2]
    unit = "\t" if "\t" in text else "    "
    code = f"if xs:\n{indent}{unit}y()"
    assert expected in stub.filled(text, code)
    assert objection(grammar_of("python"), text, stub, code) == ""


@pytest.mark.parametrize(("language", "marked"), NOT_HERE)
def test_no_hole_is_offered_in_a_string_or_an_argument(language: str, marked: str) -> None:
    assert stub_in(language, marked, whole=False)[1] is None


@pytest.mark.parametrize(("language", "marked"), AND_HERE)
def test_a_hole_is_offered_wherever_statements_stand(language: str, marked: str) -> None:
    assert stub_in(language, marked, whole=False)[1] is not None


@pytest.mark.parametrize(("language", "marked", "code", "expected"), HERE)
def test_a_hole_in_a_body_is_found_and_filled(language: str, marked: str, code: str, expected: str) -> None:
    text, stub = stub_in(language, marked, whole=False)
    grammar = grammar_of(language)
    assert stub is not None
    assert expected in stub.filled(text, code)
    assert objection(grammar, text, stub, code) == ""


@pytest.mark.parametrize(
    "marked",
    [
        "def f(a):\n    b = '''\n    pass|\n    '''\n",
        "x = 1\n|\n",
        "def f(a):\n    return a|\n",
        "# TODO|\n",
        "def f(a):\n    return a\n\n|\n\ndef g():\n    return 1\n",
        "def f(a):\n    return a\n# TODO|\n\nx = 1\n",
        "class A:\n    def f(self):\n        return 1\n\n    # TODO: more methods|\n    x = 1\n",
        "class A:\n    def f(self):\n        return 1\n    |\n",
        "def f(\n    a,\n    # TODO: types|\n    b,\n):\n    return a\n",
        "def f(\n    a,\n|\n    b,\n):\n    return a\n",
        "x = [\n    1,\n    # TODO|\n]\n",
        "def f(a):\n    return g(\n        # TODO|\n    )\n",
    ],
)
def test_there_is_no_hole_there(marked: str) -> None:
    assert stub_in("python", marked, whole=False)[1] is None
