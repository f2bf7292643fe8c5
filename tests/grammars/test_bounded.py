"""Whatever a text is like, parsing it and looking around a place in it end."""

from __future__ import annotations

import itertools

import pytest

from remask.grammars import Grammar, GrammarError, bounded, grammars
from remask.grammars.bounded import matches_at, parse_bounded
from remask.grammars.functions import functions_near
from tests.support.samples import SAMPLES

PIECES = ("(", "{", "[", "\\\n", "<", '"', "def f(", "x = ", "`${", "/*", "#", "if (", "\n ")
SIZE = 10_000


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> itertools.count[int]:
    """Counts looks at the clock; after the first few the time is up."""
    ticks = itertools.count()
    monkeypatch.setattr(bounded, "clock", lambda: next(ticks) * bounded.QUERY_WITHIN_S / 2)
    return ticks


@pytest.mark.parametrize("grammar", grammars(), ids=lambda grammar: grammar.name)
@pytest.mark.parametrize("piece", PIECES)
def test_any_text_is_given_up_when_the_time_is_up(grammar: Grammar, piece: str, looks: itertools.count[int]) -> None:
    source = (piece * SIZE)[:SIZE].encode()
    try:
        root = parse_bounded(grammar, source).root_node
    except GrammarError:
        pass
    else:
        functions_near(grammar, root, SIZE // 2)
    most = 2 * bounded.PARSE_WITHIN_S / bounded.QUERY_WITHIN_S + 10
    assert next(looks) < most


@pytest.mark.parametrize("grammar", grammars(), ids=lambda grammar: grammar.name)
def test_what_is_given_up_has_no_tree_and_no_functions(grammar: Grammar, monkeypatch: pytest.MonkeyPatch) -> None:
    source = b"(" * 5_000
    root = parse_bounded(grammar, source).root_node
    monkeypatch.setattr(bounded, "QUERY_WITHIN_S", 0.0)
    monkeypatch.setattr(bounded, "PARSE_WITHIN_S", 0.0)
    assert functions_near(grammar, root, 2_500) == []
    with pytest.raises(GrammarError, match="longer than"):
        parse_bounded(grammar, source)


def test_the_tree_is_that_of_a_parse_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters of several bytes may lie across the pieces that the parser is given."""
    monkeypatch.setattr(bounded, "_CHUNK", 7)
    source = ("def größe(x):\n    return '😀é' + x\n\n\n" * 20 + "class").encode()
    for grammar in grammars():
        assert str(parse_bounded(grammar, source).root_node) == str(grammar.parse(source).root_node)


def test_matches_are_those_of_the_query() -> None:
    (grammar,) = (one for one in grammars() if one.name == "python")
    source = b"def f():\n    def g(): pass\n\n\ndef h(): pass\n"
    root = parse_bounded(grammar, source).root_node
    found = matches_at(grammar.function_query, root, 17, 18)
    assert [match["function"][0].start_byte for match in found] == [0, 13]


@pytest.mark.parametrize("line", ["x = \n", "x = 1\n", "x;\n", "}\n", "\n"])
@pytest.mark.parametrize("grammar", grammars(), ids=lambda grammar: grammar.name)
def test_a_function_before_many_short_lines_is_found_and_the_process_lives(grammar: Grammar, line: str) -> None:
    """A query that reports its progress crashed the interpreter on many nodes side by side."""
    prefix, body, suffix = SAMPLES[grammar.name].parts
    source = (prefix + body + suffix + line * 300).encode()
    root = parse_bounded(grammar, source).root_node
    start = len(prefix.encode())
    assert any(f.body.start_byte <= start < f.body.end_byte for f in functions_near(grammar, root, start))
    for at in range(start, len(source), 97):
        functions_near(grammar, root, at)
