"""Texts and the bytes that tree-sitter counts in: any text there and back."""

from hypothesis import given
from hypothesis import strategies as st

from remask.grammars.source import byte_count, code_points, encode


@given(st.text(st.characters(exclude_categories=()), max_size=20), st.integers(0, 20))
def test_offsets_there_and_back(text: str, at: int) -> None:
    assert code_points(encode(text), byte_count(text[:at])) == min(at, len(text))
    assert byte_count(text) == len(encode(text))


def test_inside_a_character_is_its_start() -> None:
    assert [code_points(encode("aé\ud800"), at) for at in range(5)] == [0, 1, 1, 2, 3]
