"""What is trimmed, and, as important, what is not.

A case writes the cursor as | and says the model's text and what is left of it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.contract.messages import Reason
from remask.lsp_server import postprocess
from remask.lsp_server.postprocess import drop_overlap, tidy

TRIMMED = {
    "closing bracket": ("f(q|)", "a, b)", "a, b"),
    "bracket and colon": ("def f(|):", "x, y):", "x, y"),
    "rest of the signature": ("def f(|) -> int:", "x) -> int:", "x"),
    "quote": ('print("|")', 'hello")', "hello"),
    "quote alone": ("x = '|'", "a'", "a"),
    "two brackets": ("f(g(|))", "x))", "x"),
    "brace": ('d = {"a": |}', "1}", "1"),
    "whole rest without brackets": ("total = |+ offset", "base + offset", "base "),
    "rest after indentation": ("    |return x", "y = 2\n    return x", "y = 2\n    "),
    "trailing line break": ("x = |", "1\n", "1"),
    "trailing line breaks and indentation": ("x = |", "1\n\n    ", "1"),
    "the next line": ("a = 1\n|\nc = 3", "b = 2\nc = 3", "b = 2"),
    "the next two lines": ("|\nb = 2\n\nc = 3", "a = 1\nb = 2\nc = 3", "a = 1"),
    "closing line": ("f(|\n)", "\n    a,\n)", "\n    a,"),
    "closing line of two": ("f(\n    g(|\n    )\n)", "\n        a\n    )\n)", "\n        a"),
    "indentation that is there": ("def f():\n    a = 1\n    |", "    return a", "return a"),
    "spaces on top of tabs": ("def f(a):\n\tif a:\n\t\t|", "    return a", "return a"),
    "tab that is there": ("def f():\n\ta = 1\n\t|", "\treturn a", "return a"),
}

KEPT = {
    "a bracket that the text opened": ("f(|)", "g(x)"),
    "a bracket that the prefix still lacks": ("f(g(|)", "x)"),
    "a bracket of a line above": ("f(\n    g(|)", "x)"),
    "a quote of its own": ('f(|, "b")', '"a"'),
    "the rest would cut a word": ("x = |1000", "21000"),
    "a short rest": ("x = |1", "1"),
    "the same word, other rest": ("a = |b + c", "b"),
    "a colon that belongs": ("d = {|: 1}", '"a"'),
    "rows of data": ("[\n    [0, 0],\n    |\n    [0, 0],\n]", "[0, 0],"),
    "a closing line that is needed": ("f(\n    g(|\n)", "\n        a\n    )"),
    "another indentation": ("if a:\n    |\npass", "pass"),
    "deeper block": ("def f():\n    if a:\n    |", "    return a"),
    "deeper as above": ("def f():\n    if a:\n        b()\n    |", "    c()"),
    "argument of a call": ("f(\n    a,\n    |", "    b)"),
    "no line at all below": ("x = |", "1"),
    "empty line below": ("def f():\n    |\n\n\ndef g(): pass", "return 1"),
    "text with inner blank lines": ("|", "a = 1\n\nb = 2"),
    "space before what follows": ("x = |y", "a + "),
    "apostrophe in a comment": ("# don|\n", "'t"),
}


def run(case: str, text: str) -> tuple[str, Reason | None]:
    prefix, _, suffix = case.partition("|")
    return tidy(text, prefix, suffix)


@pytest.mark.parametrize("name", TRIMMED)
def test_what_stands_there_already_is_trimmed(name: str) -> None:
    case, text, left = TRIMMED[name]
    assert run(case, text) == (left, None)


@pytest.mark.parametrize("name", KEPT)
def test_what_is_needed_is_kept(name: str) -> None:
    case, text = KEPT[name]
    assert run(case, text) == (text, None)


@pytest.mark.parametrize(
    ("case", "text", "reason"),
    [
        ("x = |", "", Reason.EMPTY),
        ("x = |", "  \n ", Reason.EMPTY),
        ("f(|)", ")", Reason.DUPLICATE),
        ("|\nb = 2", "b = 2", Reason.DUPLICATE),
        ("retu|\nreturn x", "rn x", Reason.DUPLICATE),
        ("|def f(): pass", "import x\n", Reason.EMPTY),  # without its line break it would mean something else
    ],
)
def test_where_nothing_is_left_there_is_a_reason(case: str, text: str, reason: Reason) -> None:
    assert run(case, text) == ("", reason)


CODE = st.text(alphabet="ab ()[]{}'\":,\n", max_size=30)


@given(CODE, CODE, CODE)
def test_what_is_left_is_part_of_the_text_and_can_be_shown(text: str, prefix: str, suffix: str) -> None:
    left, reason = tidy(text, prefix, suffix)
    assert left in text
    assert (not left) == (reason is not None)
    assert not left.endswith("\n")
    assert not left or left.strip()


def overlap_dropped(text: str, prefix: str, suffix: str) -> str:
    """As drop_overlap, but that every length is tried."""
    rest, shown = suffix.partition("\n")[0].rstrip(), text.rstrip()
    for length in range(len(rest) if rest.strip() else 0, 0, -1):
        if shown.endswith(rest[:length]) and postprocess._may_drop(shown[:-length], rest[:length], rest, prefix):
            return shown[:-length]
    return text


@given(CODE, CODE, CODE)
def test_an_overlap_of_every_length_is_found(text: str, prefix: str, suffix: str) -> None:
    for whole in (text, text + suffix.partition("\n")[0], text + suffix[:3]):
        assert drop_overlap(whole, prefix, suffix) == overlap_dropped(whole, prefix, suffix)


@pytest.mark.parametrize("piece", [")", "}", ";", "'", "a", "x, ", ") "])
@pytest.mark.parametrize("prefix", ["", "(" * 3_000])
def test_the_looks_at_a_long_line_are_few(monkeypatch: pytest.MonkeyPatch, piece: str, prefix: str) -> None:
    read = 0
    surplus = postprocess.surplus

    def counted(prefix: str, text: str) -> int:
        nonlocal read
        read += len(text)
        return surplus(prefix, text)

    monkeypatch.setattr(postprocess, "surplus", counted)
    line, text = piece * 30_000, piece * 5_000
    drop_overlap(text, prefix, line)
    drop_overlap(line, prefix, line)
    assert read < 3 * postprocess._MAX_TRAILERS * (len(line) + len(text))
