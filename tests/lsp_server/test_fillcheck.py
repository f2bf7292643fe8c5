"""What may be written into a stub. A `|` marks the cursor."""

from __future__ import annotations

import pytest
from stubs_in import grammar_of, stub_in

from remask.lsp_server import fillcheck
from remask.lsp_server.fillcheck import objection


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
    grammar = grammar_of(language)
    assert stub is not None
    assert why in objection(grammar, text, stub, code)


@pytest.mark.parametrize("character", [chr(one) for one in (*range(32), *range(127, 160)) if one not in (9, 10)])
def test_a_control_character_is_not_shown(character: str) -> None:
    """In a string or a comment a parser takes most of them; the editor's text is not what it seems then."""
    for language, marked, code in (
        ("python", "def f(a):\n    pass|\n", "return 1  # {}x"),
        ("c", "int f(int a) {\n  |\n}\n", 'return "{}"[0];'),
    ):
        text, stub = stub_in(language, marked)
        assert stub is not None
        assert objection(grammar_of(language), text, stub, code.format("\t")) == ""
        assert "control character" in objection(grammar_of(language), text, stub, code.format(character))


@pytest.mark.parametrize("body", ["    pass|\n", "|", "    # nothing yet|\n"])
@pytest.mark.parametrize("code", ["break", "return = 1", "nonlocal a", "x: int\n    global x", "await a", "return a\\"])
def test_what_python_does_not_compile_is_not_shown(code: str, body: str) -> None:
    text, stub = stub_in("python", f"def f(a):\n{body}")
    grammar = grammar_of("python")
    assert stub is not None
    assert objection(grammar, text, stub, code)


def test_the_old_text_is_parsed_once_for_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    text, stub = stub_in("python", "def only_here():\n    pass|\n")
    grammar = grammar_of("python")
    assert stub is not None
    read: list[str] = []
    encode, compiles = fillcheck.encode, fillcheck._compiles
    monkeypatch.setattr(fillcheck, "encode", lambda text: (read.append(text), encode(text))[1])
    monkeypatch.setattr(fillcheck, "_compiles", lambda text: (read.append("c" + text), compiles(text))[1])
    for code in ("return (", "x = )", "return = 1", "break", "return 1"):
        objection(grammar, text, stub, code)
    assert read.count(text) == 1
    assert read.count("c" + text) <= 1
