"""Lays out what the model reads: `[suffix][prefix]`, so that typing only appends, in windows that move in steps.

A window depends on the text alone, never on earlier requests: a cold session reads what a warm one has.
Knows the spec's tokens and bounds; knows no KV state.
"""

from __future__ import annotations

from collections.abc import Callable

from remask.engine.models.model import Model

CHARACTERS_PER_TOKEN = 3  # a low guess for source code; a window with more tokens than its bound is halved
STEPS_PER_WINDOW = 4  # the window's start moves by a quarter: most keystrokes leave it where it is


def prompt_tokens(model: Model, prefix: str, suffix: str) -> list[int]:
    """`[suffix token] suffix [prefix token] prefix`, or without the suffix part where nothing follows."""
    spec = model.spec
    after = _bounded(model, suffix, spec.suffix_tokens, suffix_window)
    before = _bounded(model, prefix, spec.prefix_tokens, prefix_window)
    head = [spec.suffix_id, *after] if after else []
    return [*head, spec.prefix_id, *before]


def prefix_window(prefix: str, characters: int) -> str:
    """The last `characters` or fewer, from a line start whose place in the text moves in steps."""
    if len(prefix) <= characters:
        return prefix
    step = max(1, characters // STEPS_PER_WINDOW)
    start = -(-(len(prefix) - characters) // step) * step
    line = prefix.find("\n", start - 1) + 1
    return prefix[line if 0 < line < len(prefix) else start :]


def suffix_window(suffix: str, characters: int) -> str:
    """The first `characters` or fewer, up to a line end."""
    if len(suffix) <= characters:
        return suffix
    line = suffix.rfind("\n", 0, characters) + 1
    return suffix[: line or characters]


def _bounded(model: Model, text: str, tokens: int, window: Callable[[str, int], str]) -> list[int]:
    characters = tokens * CHARACTERS_PER_TOKEN
    ids = model.encode(window(text, characters))
    while len(ids) > tokens:
        characters //= 2
        ids = model.encode(window(text, characters))
    return ids
