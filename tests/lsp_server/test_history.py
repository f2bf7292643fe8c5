"""What was written is offered again while it is typed, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.lsp_server.history import KEPT_DOCUMENTS, KEPT_PER_DOCUMENT, History

TEXT = "value + other\nreturn value"


def history(prefix: str = "x = ", suffix: str = "\nend", *texts: str) -> History:
    history = History()
    history.keep("a", prefix, suffix, texts or (TEXT,))
    return history


@pytest.mark.parametrize("length", range(len(TEXT)))
def test_every_beginning_of_it_may_be_typed_or_accepted(length: int) -> None:
    found = history().find("a", "x = " + TEXT[:length], "\nend")
    assert found is not None
    assert found[1] == (TEXT[length:],)


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("x = v!", "\nend"),
        ("x =", "\nend"),
        ("y = v", "\nend"),
        ("x = v", "\nEnd"),
        ("x = v", "end"),
        ("x = v", ")\nend"),
        ("x = " + TEXT, "\nend"),
    ],
)
def test_any_other_place_has_nothing(prefix: str, suffix: str) -> None:
    assert history().find("a", prefix, suffix) is None
    assert history().find("b", "x = v", "\nend") is None


@pytest.mark.parametrize(
    ("text", "typed", "suffix", "rest"),
    [
        ("f(a, b)", "f(", ")", "a, b"),
        ("f(a, b)\ng()", "f(", ")", "a, b)\ng("),  # the closer behind the cursor is the last one now
        ("f(a, b)\ng", "f(", ")", None),
        ("f([1])", "f([", "])", "1"),
        ("f('a')", "f('", "')", "a"),
        ("f(a", "f(", ")", None),
    ],
)
def test_pairs_that_the_editor_closed(text: str, typed: str, suffix: str, rest: str | None) -> None:
    found = history("x = ", "\nend", text).find("a", "x = " + typed, suffix + "\nend")
    assert (found and found[1]) == ((rest,) if rest else None)


def test_several_texts_and_only_those_that_fit() -> None:
    found = history("x = ", "", "abc", "abd", "xyz").find("a", "x = ab", "")
    assert found is not None
    assert found[1] == ("c", "d")


def test_a_rest_of_white_space_is_nothing() -> None:
    assert history("x = ", "", "a\n  ").find("a", "x = a", "") is None


def test_the_newest_wins_and_old_ones_go() -> None:
    kept = history()
    number = kept.keep("a", "x = ", "\nend", ("value * 2",))
    assert kept.find("a", "x = v", "\nend") == (number, ("alue * 2",))
    for other in range(KEPT_PER_DOCUMENT):
        kept.keep("a", f"{other}", "", ("t",))
    assert kept.find("a", "x = v", "\nend") is None
    kept.keep("z", "q", "", ("t",))
    for other in range(KEPT_DOCUMENTS):
        kept.keep(f"doc {other}", "", "", ("t",))
    assert kept.find("z", "q", "") is None
    kept.forget("doc 3")
    assert kept.find("doc 3", "", "") is None


@given(st.text(max_size=8), st.text(max_size=8), st.text(min_size=1, max_size=8), st.integers(0, 8))
def test_a_rest_always_completes_the_text(prefix: str, suffix: str, text: str, length: int) -> None:
    found = history(prefix, suffix, text).find("a", prefix + text[:length], suffix)
    if found is not None:
        assert text[:length] + found[1][0] == text
