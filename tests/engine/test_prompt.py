"""Windows depend on the text alone and move in steps; prompts keep their order and bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import PREFIX, SPEC, SUFFIX, tiny_model

from remask.engine.prompt import build_prompt, prefix_window, suffix_window

LINES = "".join(f"line {i} of the file\n" for i in range(200))


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def test_suffix_comes_first_and_nothing_stands_between_prefix_and_middle(model):
    assert build_prompt(model, "ab", "cd").tokens == [SUFFIX, *b"cd", PREFIX, *b"ab"]


def test_no_suffix_part_where_nothing_follows(model):
    assert build_prompt(model, "ab", "").tokens == [PREFIX, *b"ab"]
    assert build_prompt(model, "", "").tokens == [PREFIX]


def test_typing_appends(model):
    before = build_prompt(model, "x = ", "\nrest").tokens
    assert build_prompt(model, "x = f", "\nrest").tokens[: len(before)] == before


def test_prompt_stays_within_its_bounds(model):
    for text in (LINES, "é" * 5000, "x" * 5000):
        tokens = build_prompt(model, text, text).tokens
        assert tokens.index(PREFIX) <= SPEC.suffix_tokens + 1
        assert len(tokens) - tokens.index(PREFIX) <= SPEC.prefix_tokens + 1


def test_prefix_window_moves_in_steps_never_by_a_keystroke():
    starts = {len(LINES[:end]) - len(prefix_window(LINES[:end], 600)) for end in range(1000, 2000)}
    assert len(starts) <= 1000 // 150 + 2


@given(st.text(alphabet="ab\n", max_size=300), st.integers(4, 60))
def test_windows_touch_the_cursor_and_keep_their_bound(text, characters):
    before, after = prefix_window(text, characters), suffix_window(text, characters)
    assert text.endswith(before)
    assert text.startswith(after)
    assert max(len(before), len(after)) <= characters
    assert len(before) > 0 or not text or characters < 4 or text.endswith("\n") or before == text


def test_windows_start_and_end_at_lines():
    assert LINES[: -len(prefix_window(LINES, 500))].endswith("\n")
    assert suffix_window(LINES, 500).endswith("\n")
