"""What was typed while the engine worked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.lsp_server.features.ghost import typed_since


@pytest.mark.parametrize(
    ("now", "prefix", "suffix", "typed"),
    [
        ("a = b\nc", "a = ", "\nc", "b"),
        ("a = \nc", "a = ", "\nc", ""),
        ("a =\nc", "a = ", "\nc", None),  # deleted
        ("A = b\nc", "a = ", "\nc", None),  # changed before
        ("a = b\nd", "a = ", "\nc", None),  # changed after
        ("aa", "aa", "a", None),  # prefix and suffix must not overlap
        ("aab", "a", "b", "a"),
    ],
)
def test_typed_text_is_told_from_any_other_change(now: str, prefix: str, suffix: str, typed: str | None) -> None:
    assert typed_since(now, prefix, suffix) == typed


@given(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_whatever_is_typed_is_found(prefix: str, typed: str, suffix: str) -> None:
    assert typed_since(prefix + typed + suffix, prefix, suffix) == typed
