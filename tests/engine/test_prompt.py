"""Windows depend on the text alone and move in steps; prompts keep their order and bounds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import PREFIX, SPEC, SUFFIX, tiny_model

from remask.contract.messages import Snippet
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


def snippets(*texts):
    return [Snippet(f"{i}.py", text) for i, text in enumerate(texts)]


def test_other_files_stand_first_and_the_most_useful_next_to_the_hole(model):
    spec = replace(SPEC, context_tokens=40)
    reading = replace(model, spec=spec)
    tokens = build_prompt(reading, "ab", "", context=snippets("one", "two")).tokens
    assert bytes(tokens[: tokens.index(PREFIX)]) == b"# 1.py\ntwo\n\n# 0.py\none\n\n"
    assert tokens[tokens.index(PREFIX) :] == [PREFIX, *b"ab"]


def test_other_files_that_do_not_fit_are_left_out_whole(model):
    reading = replace(model, spec=replace(SPEC, context_tokens=20))
    tokens = build_prompt(reading, "ab", "", context=snippets("one", "x" * 30, "two")).tokens
    assert bytes(tokens[: tokens.index(PREFIX)]) == b"# 0.py\none\n\n"


def test_a_checkpoint_that_never_saw_other_files_reads_none(model):
    assert build_prompt(model, "ab", "", context=snippets("one")).tokens == [PREFIX, *b"ab"]


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
