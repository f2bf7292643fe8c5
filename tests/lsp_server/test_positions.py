"""One table of texts and their offsets in three units, and the laws that hold for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.lsp_server.positions import Unit, from_index, has_surrogates, joined, size, to_index

TEXTS = {
    # name: (text, UTF-8 bytes, UTF-16 units, code points)
    "empty": ("", 0, 0, 0),
    "ascii": ("def f():", 8, 8, 8),
    "tab": ("\tx", 2, 2, 2),
    "accent": ("é", 2, 1, 1),
    "combining": ("e\u0301", 3, 2, 2),
    "cyrillic": ("привет", 12, 6, 6),
    "cjk": ("你好", 6, 2, 2),
    "emoji": ("😀", 4, 2, 1),
    "family": ("👨\u200d👩", 11, 5, 3),
    "flag": ("🇩🇪", 8, 4, 2),
    "line ends": ("a\r\nb\rc\n", 7, 7, 7),
    "form feed": ("a\fb", 3, 3, 3),
    "separators": ("a\u2028b\u2029c\x85d", 12, 7, 7),
    "lone surrogate": ("\ud83d", 3, 1, 1),
    "mixed": ("x = '你é😀' # t", 19, 14, 13),
}


@pytest.mark.parametrize("name", TEXTS)
def test_each_unit_counts_its_own(name: str) -> None:
    text, utf8, utf16, utf32 = TEXTS[name]
    assert (size(text, Unit.UTF8), size(text, Unit.UTF16), size(text, Unit.UTF32)) == (utf8, utf16, utf32)


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("name", TEXTS)
def test_every_place_survives_the_way_there_and_back(name: str, unit: Unit) -> None:
    text = TEXTS[name][0]
    for index in range(len(text) + 1):
        assert to_index(text, from_index(text, index, unit), unit) == index


@pytest.mark.parametrize(
    ("text", "unit", "offset", "index"),
    [
        ("a😀b", Unit.UTF16, 2, 1),  # between the halves of the pair
        ("a😀b", Unit.UTF16, 3, 2),
        ("a😀b", Unit.UTF8, 2, 1),
        ("a😀b", Unit.UTF8, 4, 1),
        ("a😀b", Unit.UTF8, 5, 2),
        ("你好", Unit.UTF8, 4, 1),
        ("你好", Unit.UTF8, 99, 2),
        ("你好", Unit.UTF16, 99, 2),
        ("abc", Unit.UTF32, 99, 3),
        ("abc", Unit.UTF16, -1, 0),
    ],
)
def test_an_offset_that_is_no_place_is_clamped(text: str, unit: Unit, offset: int, index: int) -> None:
    assert to_index(text, offset, unit) == index


@given(st.text().map(joined), st.integers(-2, 60), st.sampled_from(Unit))
def test_an_offset_means_the_last_character_that_starts_at_or_before_it(text: str, offset: int, unit: Unit) -> None:
    starts = [sum(size(c, unit) for c in text[:i]) for i in range(len(text) + 1)]
    expected = max([i for i, start in enumerate(starts) if start <= offset], default=0)
    assert to_index(text, offset, unit) == expected


def test_the_halves_of_a_pair_are_joined() -> None:
    assert joined("a\ud83d" + "\ude00b") == "a😀b"
    assert joined("\ude00\ud83d") == "\ude00\ud83d"
    assert has_surrogates("\ud83d")
    assert not has_surrogates("😀é")
