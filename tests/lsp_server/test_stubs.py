"""Functions without a body, in every language. A `|` marks the cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import SAMPLES
from stubs_in import grammar_of, stub_in

from remask.grammars import GrammarError
from remask.lsp_server import holes, parsed, stubs
from remask.lsp_server.fillcheck import objection
from remask.lsp_server.holes import stub_here
from remask.lsp_server.stubs import function_stub

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
    ("javascript", "const f = (x) => {|};\n", "return x;", "{\n  return x;\n};"),
    (
        "javascriptreact",
        "class A { m() {| throw new Error('not implemented'); } }\n",
        "return 1;",
        "{\n  return 1;\n}",
    ),
    (
        "typescript",
        "function f(a: number): number {\n  throw new Error('TODO')|;\n}\n",
        "return a;",
        "{\n  return a;\n}",
    ),
    ("typescriptreact", "function F(p: P) {\n|}\n", "return <b/>;", "{\n  return <b/>;\n}"),
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
    ("java", "class A {\n    int f() {|", "return 1;", "f() {\n        return 1;\n    }"),
    ("c", "int f(void) {|\n", "return 1;", "{\n    return 1;\n}"),
    ("go", "package a\n\nfunc f() {|}\n", "g()", "{\n\tg()\n}"),
    ("go", 'package a\n\nfunc f() error {\n\treturn errors.New("not implemented")|\n}\n', "g()", "{\n\tg()\n}"),
    ("python", "def f(\n    a: int,\n) -> int:|\n\n\nx = 1\n", "return a", ") -> int:\n    return a\n\n\nx"),
    ("python", "def |f(\n    a: int,\n) -> int:\n", "return a", ") -> int:\n    return a\n"),
    ("python", "class A:\n  def f(self):\n    |\n\n  x = 1\n", "return 1", "self):\n    return 1\n"),
    ("python", "def f():  # soon\n|\nx = 1\n", "return 1", "# soon\n    return 1\n\nx"),
    (
        "python",
        "def f():\n    # TODO: the\n    # sum|\n\n\ndef g(): pass\n",
        "return 1",
        "# sum\n    return 1\n\n\ndef g",
    ),
    (
        "python",
        "class A:\n  def |f(self):\n    # TODO\n\n  # more\n  x = 1\n",
        "return 1",
        "TODO\n    return 1\n\n  # more",
    ),
]


@pytest.mark.parametrize(("language", "marked", "code", "expected"), STUBS)
def test_a_stub_is_found_and_filled(language: str, marked: str, code: str, expected: str) -> None:
    text, stub = stub_in(language, marked)
    grammar = grammar_of(language)
    assert stub is not None
    assert expected in stub.filled(text, code)
    assert objection(grammar, text, stub, code) == ""
    assert stub.name == ("m" if " m()" in text else "F" if "F(" in text else "" if "=>" in text else "f")


@pytest.mark.parametrize(
    ("language", "marked", "expected"),
    [
        ("python", "class A:\n    def f(self):\n        |\n\n    x = 1\n", "self):\n        return 1\n\n    x = 1\n"),
        ("python", "class A:\n    def f(self):\n        |", "self):\n        return 1"),
        ("python", "def f():\n  |\n", "f():\n  return 1\n"),
        ("python", "def f():\n        |\n", "f():\n        return 1\n"),
        ("python", "def f():\n\t|\n\n\nx = 1\n", "f():\n\treturn 1\n\n\nx = 1\n"),
        ("python", "def f():\n\n    |\n\nx = 1\n", "f():\n    return 1\n\nx = 1\n"),
        ("python", "def f():\n    # TODO\n    |\n\nx = 1\n", "# TODO\n    return 1\n\nx = 1\n"),
        ("python", 'def f():\n    """Doc."""\n    |\n\nx = 1\n', '"""\n    return 1\n\nx = 1\n'),
        ("python", "class A:\n    def |f(self):\n\n    \n    x = 1\n", "self):\n        return 1\n\n    \n    x = 1\n"),
        ("go", "package a\n\nfunc f() int {\n\t|\n}\n", "{\n\treturn 1\n}\n"),
        ("go", "package a\n\nfunc f() int {\n\t// TODO\n\t|\n}\n", "TODO\n\treturn 1\n}\n"),
        ("typescript", "function f() {\n  |\n}\n", "{\n  return 1\n}\n"),
    ],
)
def test_the_blank_line_of_a_body_is_replaced(language: str, marked: str, expected: str) -> None:
    text, stub = stub_in(language, marked)
    assert stub is not None
    assert stub.filled(text, "return 1").endswith(expected)
    assert objection(grammar_of(language), text, stub, "return 1") == ""


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("typescript", "const dou|ble = (x: number): number => {};\n"),
        ("typescript", "const double|: F = (x) => {};\n"),
        ("typescript", "export con|st double = (x: number): number => {};\n"),
        ("typescript", "|export const double = async () => {\n  // TODO\n};\n"),
        ("typescript", "function f() {\n  g();\n  const h| = () => {};\n}\n"),
        ("typescript", "class A {\n  lo|ad = () => {};\n}\n"),
        ("javascript", "module.exports.f|  = function () {};\n"),
        ("javascript", "const o = {\n  a|: () => {},\n  b: 1,\n};\n"),
        ("go", "package a\n\nfunc f() {\n\tg()\n\th| := func() {\n\t}\n}\n"),
        ("go", "package a\n\nvar f| = func() {\n}\n"),
        ("rust", "fn f() {\n    g();\n    let h| = |x| {};\n}\n"),
        ("cpp", "auto f| = [](int x) {};\n"),
        ("java", "class A {\n  Runnable r| = () -> {};\n}\n"),
    ],
)
def test_a_function_that_a_name_gets_is_found_at_the_name(language: str, marked: str) -> None:
    before, _, after = marked.partition("|")
    stub = function_stub(grammar_of(language), before + after, len(before))
    assert stub is not None
    assert stub.function[0] > len(before)


@pytest.mark.parametrize("marked", ["const a| = 1, b = () => {};\n", "fo|o(() => {});\n", "a|;\nconst b = () => {};\n"])
def test_a_function_that_another_name_gets_is_not_found(marked: str) -> None:
    assert stub_in("javascript", marked)[1] is None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_body_that_was_left_out_is_put_back(name: str) -> None:
    sample = SAMPLES[name]
    prefix, body, suffix = sample.parts
    text, stub = stub_in(name, f"{prefix}|{sample.placeholder}{suffix}")
    assert stub is not None
    assert stub.filled(text, body) == prefix + body + suffix
    assert objection(grammar_of(name), text, stub, body) == ""
    if not grammar_of(name).text.offside:
        text, stub = stub_in(name, f"{prefix.rstrip()}|{suffix.lstrip()}")
        assert stub is not None
        assert body in stub.filled(text, body)


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("python", "def f(a):\n    return a|\n"),
        ("python", "def f(a):\n    pass\n\n|\nx = 1\n"),
        ("python", "def f(a):\n    # TODO\n    return a\n    # so|\n"),
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


def test_a_large_text_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    function = "def f():\n    pass|\n"
    assert stub_in("python", "#" * 99_000 + "\n" + function)[1] is not None
    monkeypatch.setattr(stubs, "parsed", None)
    monkeypatch.setattr(holes, "parsed", None)
    for whole in (True, False):
        assert stub_in("python", "#" * 100_000 + "\n" + function, whole=whole)[1] is None


def test_a_text_that_takes_too_long_to_parse_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors ask at each move of the cursor, and the parse holds up all that they want."""
    tried: list[bytes] = []
    parse = parsed.parse_bounded
    monkeypatch.setattr(parsed, "parse_bounded", lambda grammar, text: (tried.append(text), parse(grammar, text))[1])
    monkeypatch.setattr("remask.grammars.bounded.PARSE_WITHIN_S", 0.0)
    text = "\\\n" * 3_000 + "def only_here():\n    pass|\n"
    for whole in (True, False, True):
        with pytest.raises(GrammarError, match="longer than"):
            stub_in("python", text, whole=whole)
    assert len(tried) == 1


@given(name=st.sampled_from(sorted(SAMPLES)), data=st.data())
def test_any_text_at_any_place_gives_a_stub_inside_it_or_none(name: str, data: st.DataObject) -> None:
    """Whatever half of a program is open: nothing is raised, and a stub keeps the rest of the text."""
    sample = SAMPLES[name]
    text = "".join(sample.parts).replace(sample.parts[1], data.draw(st.sampled_from([sample.placeholder, "", "\n😀("])))
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    text = data.draw(
        st.sampled_from([text, text[:start] + text[end:], text[start:end], f"{text[:end]}\n{text[start:]}"])
    )
    offset = data.draw(st.integers(0, len(text)))
    for whole in (True, False):
        stub = (function_stub if whole else stub_here)(grammar_of(name), text, offset)
        if stub is None:
            continue
        assert stub.whole is whole
        assert 0 <= stub.function[0] <= stub.body_start <= stub.hole[0] + 1
        assert stub.hole[0] <= stub.hole[1] <= len(text)
        before, after = stub.around(text)
        assert before.startswith(text[: stub.hole[0]])
        assert after.endswith(text[stub.hole[1] :])
        objection(grammar_of(name), text, stub, "x = 1")
