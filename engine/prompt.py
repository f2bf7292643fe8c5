"""Lays out what the model reads, in windows that move in steps, so that a keystroke leaves most of it as it was.

A window depends on the text alone, never on earlier requests: a cold session reads what a warm one has.
Knows the spec's layout, marks and bounds; knows no KV state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from remask.contract.messages import Snippet
from remask.engine.chat import chat_prompt
from remask.engine.control.guide import guide_comment
from remask.engine.models.model import Model
from remask.engine.models.spec import Layout

CHARACTERS_PER_TOKEN = 3  # a low guess for source code; a window with more tokens than its bound is halved
STEPS_PER_WINDOW = 4  # the window's start moves by a quarter: most keystrokes leave it where it is


@dataclass(frozen=True, slots=True)
class Prompt:
    """Tokens before the hole, and those after it where the checkpoint reads both sides."""

    tokens: list[int]
    after: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens) + len(self.after)


def build_prompt(
    model: Model, prefix: str, suffix: str, language: str = "", context: Sequence[Snippet] = (), guide: str = ""
) -> Prompt:
    """The prompt for the hole between `prefix` and `suffix`, as the checkpoint's layout wants it.

    The guide stands first, as a comment; then snippets of other files, the most useful next to the hole, as many as
    `context_tokens` allow.

    Raises ModelError where the layout is a chat and the tokenizer has none of the known marks of turns.
    """
    spec = model.spec
    before, before_text = _bounded(model, prefix, spec.prefix_tokens, prefix_window)
    after, after_text = _bounded(model, suffix, spec.suffix_tokens, suffix_window)
    others = guide_comment(guide, language) + _other_files(model, context)
    if spec.layout is Layout.SUFFIX_PREFIX:
        head = [spec.suffix_id, *after] if after else []
        return Prompt([*model.encode(others), *head, spec.prefix_id, *before])
    if spec.layout is Layout.FIM:
        return Prompt([*model.encode(others), spec.prefix_id, *before, spec.suffix_id, *after, spec.middle_id])
    if spec.layout is Layout.HOLE:
        # Logits that predict the next position need a token before the first.
        return Prompt([*model.encode(others), *before] or [spec.end_ids[0]], after)
    return Prompt(chat_prompt(model, before_text, after_text, language, others))


def _other_files(model: Model, context: Sequence[Snippet]) -> str:
    """The snippets that fit, each under its path, the first one last."""
    room, kept = model.spec.context_tokens, []
    for snippet in context if room else ():
        piece = f"# {snippet.path}\n{snippet.text.strip()}\n\n"
        room -= len(model.encode(piece))
        if room < 0:
            break
        kept.append(piece)
    return "".join(reversed(kept))


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


def _bounded(model: Model, text: str, tokens: int, window: Callable[[str, int], str]) -> tuple[list[int], str]:
    """Tokens of the largest window that has at most `tokens` of them, and its text."""
    characters = tokens * CHARACTERS_PER_TOKEN
    ids = model.encode(window(text, characters))
    while len(ids) > tokens:
        characters //= 2
        ids = model.encode(window(text, characters))
    return ids, window(text, characters)
