"""Infilling with a checkpoint that only follows instructions: ask it to write what belongs into the hole.

The end of the file comes first, so that typing changes only what stands behind it; the reply is begun with
the cursor's own line, so that the model goes on exactly at the cursor, and ends with the closing fence.
"""

from __future__ import annotations

from dataclasses import dataclass

from remask.contract.errors import ModelError
from remask.engine.models.model import Model

FENCE = "```"
BEGIN = "<bos>"  # what Gemma's prompts start with; other formats have no such token


@dataclass(frozen=True, slots=True)
class Turns:
    """The marks of one chat format: what opens a user's and a model's turn, and what closes a turn."""

    user: tuple[str, str]  # a special token, and plain text behind it
    model: tuple[str, str]
    close: str


FORMATS = (
    Turns(("<|im_start|>", "user\n"), ("<|im_start|>", "assistant\n"), "<|im_end|>"),
    Turns(("<start_of_turn>", "user\n"), ("<start_of_turn>", "model\n"), "<end_of_turn>"),
    Turns(("<|turn>", "user\n"), ("<|turn>", "model\n"), "<turn|>"),
)


def chat_prompt(model: Model, prefix: str, suffix: str, language: str, others: str = "") -> list[int]:
    """Tokens of an instruction to fill the hole, up to where the reply reaches the cursor. Raises ModelError."""
    turns = next((t for t in FORMATS if model.tokenizer.token_to_id(t.close) is not None), None)
    if turns is None:
        raise ModelError(f"The tokenizer of {model.spec.name} has none of the known marks of a chat's turns.")
    line = prefix.rpartition("\n")[2]
    asked = f"From other files of the project:\n{FENCE}\n{others}{FENCE}\n" if others else ""
    asked += (
        f"Write the code that is missing between two parts of a {language or 'source'} file.\n"
        f"The second part:\n{FENCE}\n{suffix}\n{FENCE}\n"
        f"Reply with one code block: the unfinished last line of the first part, and what goes between the parts. "
        f"The first part:\n{FENCE}\n{prefix}\n{FENCE}"
    )
    start = model.tokenizer.token_to_id(BEGIN)
    return [
        *([] if start is None else [int(start)]),
        _mark(model, turns.user[0]),
        *model.encode(turns.user[1] + asked),
        _mark(model, turns.close),
        *model.encode("\n"),
        _mark(model, turns.model[0]),
        *model.encode(turns.model[1] + f"{FENCE}{language}\n{line}"),
    ]


def reply_end(text: str) -> int | None:
    """The offset where the reply's code block closes, or None while it is open."""
    if text.startswith(FENCE):
        return 0
    end = text.find("\n" + FENCE)
    return None if end < 0 else end


def _mark(model: Model, name: str) -> int:
    found = model.tokenizer.token_to_id(name)
    if found is None:
        raise ModelError(f"The tokenizer of {model.spec.name} has no token {name!r}.")
    return int(found)
