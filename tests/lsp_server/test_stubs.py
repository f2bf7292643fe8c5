"""Stubs in every language, and what may be written into them. A `|` marks the cursor."""

from __future__ import annotations

import pytest

from remask.grammars import grammar_for_language, grammars
from remask.lsp_server import fillcheck, stubs
from remask.lsp_server.fillcheck import objection
from remask.lsp_server.stubs import Stub, function_stub, indent_unit, stub_here

STUBS = [
    ("python", 'def f(a: int) -> int:\n    """Doc."""\n    pass|\n\nx = 1\n', "return a", 'c."""\n    return a\n\nx'),
    ("python", "class A:\n    def f(self): ...|\n\nx = 1\n", "return 1", "):\n        return 1\n\nx"),
    ("python", "def f():\n    # TODO: all\n    raise Not|ImplementedError('x')\n", "return 1", "all\n    return 1\n"),
    ("python", "def f(a): pass|  # later\n\nx = 1\n", "return a", "def f(a):\n    return a  # later\n\nx"),
    ("python", "@cache\ndef f(a): ...|\n", "return a", "(a):\n    return a\n"),
    ("python", "async def f(a):|\n\ndef g():\n    return 2\n", "return 1", "):\n    return 1\n\ndef g"),
    ("python", 'def f(a):\n    """Doc."""|\n', "return 1", '"""\n    return 1\n'),
    ("python", "def |f(a):\n\tpass\n", "return 1", "):\n\treturn 1\n"),
    ("javascript", "function f(a) {\n  // TODO|\n}\n", "return a;", "TODO\n  return a;\n}"),
    ("javascript", "const f = (x) => {|};\n", "return x;", "{\n    return x;\n};"),
    (
        "javascriptreact",
        "class A { m() {| throw new Error('not implemented'); } }\n",
        "return 1;",
        "{\n    return 1;\n}",
    ),
    (
        "typescript",
        "function f(a: number): number {\n  throw new Error('TODO')|;\n}\n",
        "return a;",
        "{\n  return a;\n}",
    ),
    ("typescriptreact", "function F(p: P) {\n|}\n", "return <b/>;", "{\n    return <b/>;\n}"),
    ("go", 'package a\n\nfunc f(a int) int {\n\tpanic("todo")|\n}\n', "return a", "{\n\treturn a\n}"),
    ("rust", "fn f(a: i32) -> i32 {\n    todo!()|\n}\n", "a", "{\n    a\n}"),
    ("rust", 'fn f() {| unimplemented!("x") }\n', "let a = 1;", "{\n    let a = 1;\n}"),
    (
        "java",
        "class A {\n  int f(int a) {|\n    throw new UnsupportedOperationException();\n  }\n}\n",
        "return a;",
        "return a;",
    ),
    ("c", "int f(int a) {\n  /* TODO| */\n}\n", "return a;", "*/\n  return a;\n}"),
    ("cpp", "int A::f(int a) const {|\n}\n", "return a;", "{\n    return a;\n}"),
]
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


def stub_in(language: str, marked: str, *, whole: bool = True) -> tuple[str, Stub | None]:
    grammar = grammar_for_language(language)
    assert grammar is not None
    text = marked.replace("|", "")
    return text, (function_stub if whole else stub_here)(grammar, text, marked.index("|"))


@pytest.mark.parametrize(("language", "marked", "code", "expected"), STUBS)
def test_a_stub_is_found_and_filled(language: str, marked: str, code: str, expected: str) -> None:
    text, stub = stub_in(language, marked)
    grammar = grammar_for_language(language)
    assert stub is not None
    assert grammar is not None
    assert expected in stub.filled(text, code)
    assert objection(grammar, text, stub, code) == ""
    assert stub.name == ("m" if " m()" in text else "F" if "F(" in text else "" if "=>" in text else "f")


def test_every_language_has_stubs() -> None:
    assert {grammar.name for grammar in grammars()} == {
        grammar.name for language, *_ in STUBS if (grammar := grammar_for_language(language))
    }


@pytest.mark.parametrize(("language", "marked"), NOT_HERE)
def test_no_hole_is_offered_in_a_string_or_an_argument(language: str, marked: str) -> None:
    assert stub_in(language, marked, whole=False)[1] is None


@pytest.mark.parametrize(("language", "marked"), AND_HERE)
def test_a_hole_is_offered_wherever_statements_stand(language: str, marked: str) -> None:
    assert stub_in(language, marked, whole=False)[1] is not None


@pytest.mark.parametrize(("language", "marked", "code", "expected"), HERE)
def test_a_hole_in_a_body_is_found_and_filled(language: str, marked: str, code: str, expected: str) -> None:
    text, stub = stub_in(language, marked, whole=False)
    grammar = grammar_for_language(language)
    assert stub is not None
    assert grammar is not None
    assert expected in stub.filled(text, code)
    assert objection(grammar, text, stub, code) == ""


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("python", "def f(a):\n    return a|\n"),
        ("python", "def f(a):\n    pass\n    return a|\n"),
        ("python", "x = 1|\n"),
        ("python", "class A:\n    pass|\n"),
        ("python", "def f(a):|\n    return a\n"),
        ("python", "def f(a):\n    raise ValueError('x')|\n"),
        ("rust", "fn f(a: i32) -> i32 {\n    a|\n}\n"),
        ("c", "int f(int a);|\n"),
        ("javascript", "throw new Error('TODO')|\n"),
    ],
)
def test_other_code_is_no_stub(language: str, marked: str) -> None:
    assert stub_in(language, marked)[1] is None


@pytest.mark.parametrize(
    "marked", ["def f(a):\n    b = '''\n    pass|\n    '''\n", "x = 1\n|\n", "def f(a):\n    return a|\n", "# TODO|\n"]
)
def test_there_is_no_hole_there(marked: str) -> None:
    assert stub_in("python", marked, whole=False)[1] is None


@pytest.mark.parametrize(
    ("language", "marked", "code", "why"),
    [
        ("python", 'def f(a):\n    """D."""|\n\n\nx = 1\n', "return 1\n\n\ndef k():\n    pass", "leaves the function"),
        ("python", 'def f(a):\n    """D."""|\n\n\nx = 1\n', "return 1\nx = 3", "leaves the function"),
        ("python", "def f(a):\n    pass|\n\n\nx = 1\n", "return (1", "does not parse"),
        ("python", "def f(a):\n    pass|\n", "return ++", "does not parse"),
        ("python", "def f(a):\n    pass|\n", "if a:\n            b = 1\n          c = 2", "indentation"),
        ("python", "def f(a):\n    pass|\n", "yield 1\n    return = 2", "does not parse"),
        ("python", "def f(a):\n    pass|\n", "pass", "a placeholder again"),
        ("python", "def f(a):\n    pass|\n", " \n", "nothing was written"),
        ("python", "def f(a):\n    pass|\n", "nonlocal a, *", "does not parse"),
        ("c", "int f(int a) {\n  |\n}\n", "return a;\n}\nint g() {\n return 1;", "leaves the function"),
        ("rust", "fn f() {\n    todo!()|\n}\n", "let a = ;", "does not parse"),
        ("go", 'package a\n\nfunc f() {\n\tpanic("TODO")|\n}\n', "return }", "does not parse"),
    ],
)
def test_what_may_not_be_written(language: str, marked: str, code: str, why: str) -> None:
    text, stub = stub_in(language, marked)
    grammar = grammar_for_language(language)
    assert stub is not None
    assert grammar is not None
    assert why in objection(grammar, text, stub, code)


@pytest.mark.parametrize(
    ("text", "unit"),
    [("", "    "), ("a\n  b\n", "  "), ("a\n\tb\n", "\t"), ("a\n        b\n", " " * 8), ("a\n b\n", "    ")],
)
def test_the_unit_of_indentation(text: str, unit: str) -> None:
    assert indent_unit(text) == unit


@pytest.mark.parametrize(
    "marked",
    [
        "from typing import overload\n\n@overload\ndef f(a: int) -> int: ...|\n",
        "import typing\n\n@typing.overload\ndef f(a: int) -> int:|\n",
        "class A:\n    @property\n    @abc.abstractmethod\n    def f(self):\n        pass|\n",
        "class A(Sized, Protocol[T]):\n    def f(self) -> int: ...|\n",
        "class A(Protocol):\n    @property\n    def f(self) -> int: ...|\n",
    ],
)
def test_a_declaration_needs_no_body(marked: str) -> None:
    assert stub_in("python", marked)[1] is None
    assert stub_in("python", marked, whole=False)[1] is None


@pytest.mark.parametrize("code", ["break", "return = 1", "nonlocal a", "x: int\n    global x"])
def test_what_python_does_not_compile_is_not_shown(code: str) -> None:
    text, stub = stub_in("python", "def f(a):\n    pass|\n")
    grammar = grammar_for_language("python")
    assert stub is not None
    assert grammar is not None
    assert objection(grammar, text, stub, code)


def test_a_large_text_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    function = "def f():\n    pass|\n"
    assert stub_in("python", "#" * 99_000 + "\n" + function)[1] is not None
    monkeypatch.setattr(stubs, "_parsed", None)
    for whole in (True, False):
        assert stub_in("python", "#" * 100_000 + "\n" + function, whole=whole)[1] is None


def test_the_old_text_is_parsed_once_for_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    text, stub = stub_in("python", "def only_here():\n    pass|\n")
    grammar = grammar_for_language("python")
    assert stub is not None
    assert grammar is not None
    read: list[str] = []
    encode, compiles = fillcheck.encode, fillcheck._compiles
    monkeypatch.setattr(fillcheck, "encode", lambda text: (read.append(text), encode(text))[1])
    monkeypatch.setattr(fillcheck, "_compiles", lambda text: (read.append("c" + text), compiles(text))[1])
    for code in ("return (", "x = )", "return = 1", "break", "return 1"):
        objection(grammar, text, stub, code)
    assert read.count(text) == 1
    assert read.count("c" + text) <= 1


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", "    "),
        ("def f():\n  return 1\n", "  "),
        ("class A:\n    def f(self):\n        return 1\n", "    "),
        ('class A:\n    """Two\n      odd lines.\n    """\n    def f(self):\n        return 1\n', "    "),
        ("func f() {\n\treturn\n}\n", "\t"),
    ],
)
def test_one_odd_line_does_not_change_what_a_level_of_indentation_is(text: str, unit: str) -> None:
    assert indent_unit(text) == unit
