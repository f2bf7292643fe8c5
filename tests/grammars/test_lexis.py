"""Logical lines, brackets, strings and comments, without a parse."""

import io
import sysconfig
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.grammars import grammar_for_language
from remask.grammars.lexis import scan, scan_prefix, width

PYTHON = grammar_for_language("python")
JAVASCRIPT = grammar_for_language("javascript")
SKIPPED = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(grammar, text):
    return [text[line.start : line.tail] for line in scan(grammar, text).lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\n\n  # c\nb = 2", ["a = 1", "b = 2"]),
        ("a = (1,\n  2)  # c\nb", ["a = (1,\n  2)", "b"]),
        ("a = '''x\ny'''\nb", ["a = '''x\ny'''", "b"]),
        ("a = 1 + \\\n  2\nb", ["a = 1 + \\\n  2", "b"]),
        ("a = '#'\n", ["a = '#'"]),
        ("a = 'open\nb", ["a = 'open", "b"]),
        ("a = 'x\\\ny'\nb", ["a = 'x\\\ny'", "b"]),
        ("a = (1\ndef f():\n  b", ["a = (1", "def f():", "  b"]),
        ("a = (1\nasync def f(): b", ["a = (1", "async def f(): b"]),
        ("", []),
    ],
)
def test_logical_lines_of_python(text, expected):
    assert code_lines(PYTHON, text) == expected


def test_logical_lines_of_braces_end_inside_blocks_but_not_in_brackets():
    text = "f(a,\n  () => {\n    x();\n    y(\n      1);\n  });\nz();\n"
    assert code_lines(JAVASCRIPT, text) == ["f(a,\n  () => {", "    x();", "    y(\n      1);", "  });", "z();"]


@pytest.mark.parametrize(
    ("text", "stack", "open_at"),
    [
        ("f(a[", "([", -1),
        ("f(a[)", "([", -1),
        ("f('(", "(", 2),
        ("f(  # (", "(", 4),
        ("f(  # (\n", "(", -1),
        ("'''a\n'''", "", -1),
        ("'''a\n''", "", 0),
        ("'a\\'", "", 0),
        ("'a\n", "", -1),
    ],
)
def test_what_is_open_at_the_end(text, stack, open_at):
    lexis = scan(PYTHON, text)
    assert "".join(opener for opener, _ in lexis.stack) == stack
    assert lexis.open_at == open_at


@pytest.mark.parametrize(
    ("line", "columns"), [("    x", 4), ("\tx", 8), ("  \tx", 8), ("\t x", 9), ("  \f x", 1), ("", 0)]
)
def test_width_counts_as_cpython_does(line, columns):
    assert width(line) == columns


def test_a_lone_string_is_told_from_code():
    text = 'def f():\n    """doc"""\n    r"x"\n    a = "b"\n    "a" "b"\n    f("c")\n'
    assert [line.bare for line in scan(PYTHON, text).lines] == [False, True, True, False, False, False]


def test_agrees_with_cpythons_tokenizer_on_the_standard_library():
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::4]
    assert len(files) > 30
    for file in files:
        text = file.read_text("utf-8")
        lexis = scan(PYTHON, text)
        rows = [text.count("\n", 0, line.start) + 1 for line in lexis.lines]
        assert rows == rows_by_tokenizer(text), file.name
        assert lexis.stack == (), file.name


def rows_by_tokenizer(text):
    rows, starts = [], True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in SKIPPED:
            continue
        if starts:
            rows.append(token.start[0])
        starts = token.type == tokenize.NEWLINE
    return rows


def test_of_a_large_text_only_the_end_is_scanned():
    text = "def f(a):\n    return (a)\n\n\n" * 20_000 + "def g(b):\n    x = ("
    near, whole = scan_prefix(PYTHON, text), scan(PYTHON, text)
    assert len(near.lines) < len(whole.lines) / 2
    assert near.lines == whole.lines[-len(near.lines) :]
    assert (near.stack, near.anchor) == (whole.stack, whole.anchor)


@given(st.text(alphabet="a:(){}[]'\"\\#\n \t/*`é", max_size=60), st.sampled_from([PYTHON, JAVASCRIPT]))
def test_any_text_is_scanned_and_its_lines_lie_in_it(text, grammar):
    lexis = scan(grammar, text)
    ends = [0]
    for line in lexis.lines:
        assert ends[-1] <= line.start < line.tail <= line.end <= len(text)
        ends.append(line.end)
    assert 0 <= lexis.anchor <= len(text)
    assert {line.start for line in lexis.lines} <= set(lexis.breaks)
