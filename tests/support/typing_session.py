"""A typing session over several files, made from the project's own sources; the same for the same seed.

Someone writes each file as it is: in bursts, with typing errors and corrections, with undo, with pasted lines, with
whole texts sent now and then, with CRLF in some files and characters of every width in all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("contract", "grammars", "lsp_server", "cli")
WIDE = ("é", "你好", "😀", "e\u0301", "👩‍💻", "\u2028", "\f", "ß")
BURST = (3, 14)


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` in place of what lies from `start` to `end`, in code points of the text so far; `after` is the result.

    `target` is what the author wants the file to be in the end; `whole` sends the whole text instead of a range.
    """

    file: int
    start: int
    end: int
    text: str
    after: str
    target: str
    whole: bool = False


def session(files: int = 10, edits: int = 2_000, seed: int = 1) -> Iterator[Edit]:
    """The edits, in their order, file by file in turns as someone switches between them."""
    chance = random.Random(seed)
    authors = [
        _Author(number, text, random.Random(seed * 1_000 + number)) for number, text in enumerate(_sources(files))
    ]
    made = 0
    while made < edits:
        author = chance.choice(authors)
        for _ in range(chance.randint(*BURST)):
            if made == edits:
                return
            yield author.edit()
            made += 1


def first_texts(files: int = 10) -> list[str]:
    """What is in each file at the beginning."""
    return [_start(text) for text in _sources(files)]


def _sources(files: int) -> list[str]:
    """Real files of this project, some with CRLF, each with a line of wide characters."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path.stat().st_size > 1_500)
    chance = random.Random(7)
    texts = []
    for number, path in enumerate(chance.sample(paths, files)):
        lines = path.read_text("utf-8").split("\n")
        lines.insert(len(lines) // 3, f"# {WIDE[number % len(WIDE)]} {' '.join(WIDE)}")
        texts.append(("\r\n" if number % 3 == 1 else "\n").join(lines))
    return texts


def _start(text: str) -> str:
    return text[: len(text) // 3]


class _Author:
    """Someone who writes one file."""

    def __init__(self, number: int, target: str, chance: random.Random) -> None:
        self._number = number
        self._target = target
        self._text = _start(target)
        self._chance = chance
        self._undo: list[str] = []

    def edit(self) -> Edit:
        """The next edit: towards the target, or something that people do on the way."""
        before = self._text
        good = _common(before, self._target)
        kind = self._chance.random()
        if self._undo and kind < 0.08:
            return self._replace(0, len(before), self._undo.pop(), whole=self._chance.random() < 0.5)
        if good < len(before):
            return self._replace(max(good, len(before) - self._chance.randint(1, 6)), len(before), "")
        if kind < 0.12:
            return self._somewhere(before)
        if kind < 0.16:
            return self._replace(len(before), len(before), self._chance.choice(WIDE))
        if kind < 0.2:
            return self._replace(len(before), len(before), self._chance.choice("xyz(["))
        return self._replace(good, good, self._typed(good))

    def _typed(self, at: int) -> str:
        rest = self._target[at:]
        length = 1 if self._chance.random() < 0.8 else self._chance.choice((2, 5, 40))
        if rest.startswith("\r\n"):
            length = max(length, 2)
        return rest[:length] or "\n"

    def _somewhere(self, text: str) -> Edit:
        """An edit anywhere, which is undone next."""
        at = self._chance.randrange(len(text) + 1)
        end = min(len(text), at + self._chance.choice((0, 0, 1, 3, 30)))
        self._undo.append(text)
        return self._replace(at, end, self._chance.choice(("", "q", "\n", "a\r\nb", "\r", *WIDE)), undoable=False)

    def _replace(self, start: int, end: int, text: str, *, whole: bool = False, undoable: bool = True) -> Edit:
        if _cuts_line_end(self._text, start):
            start -= 1  # no editor can do that
        if _cuts_line_end(self._text, end):
            end += 1
        if undoable and self._chance.random() < 0.05:
            self._undo = [self._text]
        self._text = self._text[:start] + text + self._text[end:]
        return Edit(self._number, start, end, text, self._text, self._target, whole)


def _cuts_line_end(text: str, at: int) -> bool:
    return at > 0 and text[at - 1 : at + 1] == "\r\n"


def _common(one: str, other: str) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
