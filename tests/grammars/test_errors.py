"""The first true error: pinned to the log of the pinned tree-sitter."""

import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remask.grammars import grammar_for_language
from remask.grammars.errors import MAX_LOGGED_BYTES, Gap, first_break, true_errors, viable_prefix

PYTHON = grammar_for_language("python")
CLASS = "class A:\n    def f(self, a):\n        {}\n        return a\n\n    def g(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ("x = foo(a", "return"),  # missing )
        ("foo(a))", ")\n"),
        ("if a\n            b", "b\n"),  # missing colon: the line end is taken for a space
        ("x = a b", "b\n"),
        ("else:", "else"),
        ("foo(a]", "]"),
        ("class = 1", "= 1"),
        ("x = a.", "return"),
        ("é = 'é' é", "é\n"),
    ],
)
def test_the_first_error_is_the_token_at_which_all_versions_gave_up(body, at):
    text = CLASS.format(body)
    first = true_errors(PYTHON, text.encode())[0].offset
    assert text.encode()[first:].decode().startswith(at)


def test_a_valid_text_has_none():
    assert true_errors(PYTHON, CLASS.format("pass").encode()) == ()
    assert true_errors(PYTHON, b"") == ()


def test_an_error_at_the_end_lies_behind_the_last_byte():
    assert [e.offset for e in true_errors(PYTHON, b"x = (1,\n\n")] == [9]


def test_a_later_error_is_found_too():
    source = b"def f():\n    x = a b\n\n\ndef g():\n    y = c d\n"
    assert [source[e.offset : e.offset + 1] for e in true_errors(PYTHON, source)] == [b"b", b"d"]


def test_a_large_text_is_refused_only_if_it_has_an_error():
    line = b"x = 1\n"
    whole = line * (MAX_LOGGED_BYTES // len(line) + 1)
    assert true_errors(PYTHON, whole) == ()
    with pytest.raises(ValueError, match="too many"):
        true_errors(PYTHON, whole + b"x = (\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = foo(a", True),
        ("if x", True),
        ("for x i", True),
        ("x = 'abc", True),
        ("def f():\n    '''doc of a thing", True),
        ("x = rb'''a b", True),
        ("x = f'{a", True),
        ("", True),
        ("x = a.b.c", True),
        ("x = a i", True),
        ("x = 'a' f", True),
        ("x = 1 .", True),
        ("x = def", True),
        ("x = a b", False),
        ("x = ... def", False),
        ("def f():\n    return._x.y", False),
        ("foo(a))", False),
        ("x = a b c", False),
        ("x = a b 'c", False),
        ("def f(:\n", False),
    ],
)
def test_viable_prefix(text, expected):
    assert viable_prefix(PYTHON, text) is expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "x = f('a', 'b\n    ", False),  # a string that its line's end does not close
        ("python", "x = f('a', 'b''\n    ", False),
        ("python", "x = 'a\\\n", True),
        ("python", "# don't\n", True),
        ("python", "def f() -> A: ..", True),
        ("python", "x = f(a):", False),  # an operator that no longer one can replace
        ("javascript", "x = 'abc\n", False),
        ("javascript", "x = `abc\n", True),
        ("javascript", "function f() {\n  return /['\"]/\n", True),
        ("javascript", "function f(a) -", False),
        ("javascript", "x = a /", True),
        ("tsx", "const a = <p>don't\n", True),
        ("typescript", "class A {\n  a?: number:", False),
        ("typescript", "class A {\n  a?", True),
        ("cpp", 'x = "abc\n', False),
        ("cpp", "#include <a/b", True),
        ("cpp", "// don't\n#error don't\n", True),
        ("rust", "fn f<'a>(x: &'a str)\n", True),
    ],
)
def test_ends_of_lines_and_operators(language, text, expected):
    assert viable_prefix(grammar_for_language(language), text) is expected


@pytest.mark.parametrize("language", ["python", "javascript", "cpp"])
@pytest.mark.parametrize("line", ["x = 'abc", "x = f(1, 'abc, d", "x = f(u'abc)"])
@pytest.mark.parametrize("more", ["", "\n    ", "\n    y = 1", "\n    y = 1\n"])
def test_a_string_that_may_not_run_on_breaks_at_its_line_s_end(language, line, more):
    text = f"{line}{more}"
    assert first_break(grammar_for_language(language), text) == (len(line) if more else None)


def test_no_prefix_of_real_code_is_refused():
    for name in ("textwrap.py", "bisect.py", "abc.py"):
        text = (Path(sysconfig.get_path("stdlib")) / name).read_text("utf-8")[:6_000]
        for end in range(0, len(text), 301):
            assert viable_prefix(PYTHON, text[:end]), (name, end)


@settings(max_examples=60)
@given(st.text(alphabet="ab(){}:'\"\n ,=.éif", max_size=40))
def test_errors_lie_in_the_text_in_order(text):
    source = text.encode()
    offsets = [e.offset for e in true_errors(PYTHON, source)]
    assert offsets == sorted(set(offsets))
    assert all(0 <= offset <= len(source) for offset in offsets)
    assert bool(offsets) == PYTHON.parse(source).root_node.has_error


DAMAGE = [")", "(", " x y", ":", "]", "return ", "=", "", "\n", "é", "'"]


GAPS = {
    "python": (
        CLASS.partition("{}")[0],
        "total = [a for a in self.é if (a > 1)]\n        self.g(total[0], b=2)",
        "\n        return a\n",
    ),
    "javascript": (
        "class A {\n  f(a) {\n    ",
        "let é = a.map((x) => x + 1);\n    if (é) { return g(é[0]); }",
        "\n  }\n}\n",
    ),
    "cpp": ("int f(int a) {\n  ", "std::vector<int> b{a, a + 1};\n  if (a > 1) { return g(b[0]); }", "\n}\n"),
}


@pytest.mark.parametrize("name", GAPS)
def test_a_gap_finds_what_a_fresh_parse_finds(name):
    """Pieces of real bodies, true and damaged, in one gap after another."""
    grammar = grammar_for_language(name)
    before, body, after = GAPS[name]
    gap, around = Gap(grammar, before), Gap(grammar, before, after)
    for at in range(0, len(body), 3):
        for damage in DAMAGE:
            middle = body[:at] + damage + body[at + 1 :]
            assert around.true_errors(middle)[:1] == true_errors(grammar, (before + middle + after).encode())[:1]
            for end in (at + 2, len(middle)):
                assert gap.first_break(middle[:end]) == first_break(grammar, before + middle[:end])
