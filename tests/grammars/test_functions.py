"""Which functions are around a byte, and which of them never get a body."""

import pytest

from remask.grammars import Grammar, grammar_for_language
from remask.grammars.functions import functions_near, is_declaration
from remask.grammars.names import name_of


def python() -> Grammar:
    grammar = grammar_for_language("python")
    assert grammar is not None
    return grammar


@pytest.mark.parametrize(
    ("marked", "names"),
    [
        ("def f():\n    def g():\n        pa|ss\n", ["g", "f"]),
        ("|def f(): pass\n", ["f"]),
        ("def f(): pass|\n", ["f"]),
        ("x = 1|\n\n\ndef f(): pass\n", []),
        ("é = '你😀'\n\n\ndef f(): pa|ss\n", ["f"]),
    ],
)
def test_the_innermost_comes_first(marked: str, names: list[str]) -> None:
    source = marked.replace("|", "").encode()
    at = len(marked.partition("|")[0].encode())
    root = python().parse(source).root_node
    assert [name_of(one.node, source) for one in functions_near(python(), root, at) if one.touches(at)] == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@overload\ndef f(a: int) -> int: ...\n", True),
        ("@ typing.overload\ndef f(a: int) -> int: ...\n", True),
        ("class A:\n    @property\n    @abc.abstractmethod\n    def f(self): ...\n", True),
        ("class A(Sized, Protocol[T]):\n    def f(self) -> int: ...\n", True),
        ("class A(Protocol):\n    @property\n    def f(self) -> int: ...\n", True),
        ("class A(Protocol):\n    def f(self) -> int:\n        def g(): ...\n", True),
        ("@not_overloaded\ndef f(): ...\n", False),
        ("class A(MyProtocol):\n    def f(self): ...\n", False),
        ("class Protocol:\n    def f(self): ...\n", False),
        ("@overload\ndef h(): ...\n\n\ndef f(): ...\n", False),
    ],
)
def test_a_declaration_never_gets_a_body(text: str, expected: bool) -> None:
    source = text.encode()
    root = python().parse(source).root_node
    at = source.index(b"def f")
    (function,) = (one for one in functions_near(python(), root, at) if one.node.start_byte == at)
    assert is_declaration(python(), root, function.node) is expected


def test_a_language_without_declarations_has_none() -> None:
    grammar = grammar_for_language("c")
    assert grammar is not None
    root = grammar.parse(b"int f() {}").root_node
    assert not is_declaration(grammar, root, functions_near(grammar, root, 0)[0].node)
