"""The definitions in a file, and the names that it imports and calls."""

from __future__ import annotations

import pytest

from remask.grammars import grammar_for_language
from remask.lsp_server.definitions import called_names, definitions, imported_names

SOURCES = {
    "python": (
        'class A:\n    x = 1\n    def m(self, a):\n        """Do it."""\n        return a\n\n\ndef f(b): return b\n',
        {"A", "m", "f"},
    ),
    "javascript": (
        "export function f(a) {\n  return a;\n}\nclass B { m() {} }\nconst g = (x) => x;\n",
        {"f", "B", "m", "g"},
    ),
    "typescript": (
        "export interface I { a: number }\ntype T = string;\nenum E { A }\nfunction f(): T { return ''; }\n",
        {"I", "T", "E", "f"},
    ),
    "go": ("package p\n\ntype S struct{ a int }\n\nfunc (s S) M() int { return 1 }\n\nfunc F() {}\n", {"S", "M", "F"}),
    "rust": (
        "struct S { a: i32 }\nimpl S { fn m(&self) -> i32 { self.a } }\ntrait T { fn n(); }\nenum E { A }\n",
        {"S", "m", "T", "n", "E"},
    ),
    "java": ("class A { int m() { return 1; } }\ninterface I {}\n", {"A", "m", "I"}),
    "c": ("struct s { int a; };\nint f(int *a) { return *a; }\n", {"s", "f"}),
    "cpp": ("namespace n { class A { int m() { return 1; } }; }\nint g() { return 2; }\n", {"n", "A", "m", "g"}),
}


@pytest.mark.parametrize("language", SOURCES)
def test_the_definitions_of_a_file(language: str) -> None:
    text, names = SOURCES[language]
    grammar = grammar_for_language(language)
    assert grammar is not None
    assert names <= {one.name for one in definitions(grammar, text)}


def test_a_function_is_shown_by_its_signature_and_documentation() -> None:
    grammar = grammar_for_language("python")
    assert grammar is not None
    shown = {one.name: one.text for one in definitions(grammar, SOURCES["python"][0])}
    assert shown["m"] == '    def m(self, a):\n        """Do it."""'
    assert shown["f"] == "def f(b):"


def test_imported_and_called_names() -> None:
    assert imported_names("from a.b import c, d as e\nx = imports\nimport f\n") == [
        *("from", "a", "b", "import", "c", "d", "as", "e", "f")
    ]
    assert imported_names("use a::B;\n#include <b.h>\nconst c = require('d');\n")[1:3] == ["a", "B"]
    assert called_names("f(a) + g (b) + h + m!(1)") == {"f", "g", "m"}


@pytest.mark.parametrize("text", ["a" * 100_000, "f0" * 50_000 + "!", "a" + " " * 100_000, "\t" * 100_000])
def test_one_very_long_word_or_gap_holds_nothing_up(text: str) -> None:
    assert not called_names(text)
    assert not imported_names(text)
    assert called_names(f"{text}\nprint !(x)\nf(1)") == {"print", "f"}
