"""Evaluation tasks: a hole with its true text, and how to tell whether a text does the job. Knows no model.

HumanEval-Infilling (Bavarian et al. 2022, github openai/human-eval-infilling) is read in its published form.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from remask.contract.errors import InputError, StorageError
from remask.contract.messages import Snippet
from remask.engine.decode.stop import EndRule, first_line_end

FOLDER = "human-eval-infilling"
FIELDS = ("task_id", "entry_point", "prompt", "suffix", "canonical_solution", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A hole between `prefix` and `suffix` that `truth` filled. `test` is what runs behind the filled file, or empty.

    `context` is what may be read of other files.
    """

    name: str
    prefix: str
    suffix: str
    truth: str
    language: str = "python"
    test: str = ""
    context: tuple[Snippet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A kind of tasks. `file`: of HumanEval-Infilling, empty where the tasks are made from held-out files.

    `end` is where the split's own definition ends a middle, beside the model's end token; None where nothing does.
    `limit`: how many tasks are done unless more are asked for, None for all. `lines`: every middle is a whole line,
    its line feed included.
    """

    name: str
    file: str = ""
    end: EndRule | None = None
    max_tokens: int = 64
    limit: int | None = None
    lines: bool = False


def whole_line(draft: str) -> int | None:
    """Behind the line feed of the first line that holds something: a middle of the single-line split."""
    end = first_line_end(draft)
    return None if end is None else end + 1


def rest_of_line(draft: str) -> int | None:
    """Before the first line feed: a middle that starts inside a line."""
    end = draft.find("\n")
    return None if end < 0 else end


MADE = 1_000  # tasks of a held-out split; there are many thousands

SPLITS = {
    s.name: s
    for s in (
        Split(name="single-line", file="HumanEval-SingleLineInfilling.jsonl", end=whole_line, lines=True),
        Split(name="multi-line", file="HumanEval-MultiLineInfilling.jsonl", max_tokens=192),
        Split(name="random-span", file="HumanEval-RandomSpanInfilling.jsonl", max_tokens=128),
        Split(name="random-span-light", file="HumanEval-RandomSpanInfillingLight.jsonl", max_tokens=128),
        Split(name="line-end", end=rest_of_line, limit=MADE),
        Split(name="statement", max_tokens=160, limit=MADE),
        Split(name="body", max_tokens=160, limit=MADE),
        Split(name="inside-token", end=rest_of_line, limit=MADE),
        Split(name="cross-file", end=rest_of_line, limit=MADE),
    )
}


class Named(Protocol):
    """Something with a name that no other of its kind has."""

    @property
    def name(self) -> str:
        """The name."""
        ...


N = TypeVar("N", bound=Named)


def split_named(name: str) -> Split:
    """The split called `name`. Raises InputError, which lists them."""
    if name not in SPLITS:
        raise InputError(f"There is no split {name!r}; there are {', '.join(SPLITS)}.")
    return SPLITS[name]


def made_split(name: str) -> Split:
    """The split called `name`, which is made from files. Raises InputError, which lists those that are."""
    made = [split.name for split in SPLITS.values() if not split.file]
    if name not in made:
        raise InputError(f"There is no split {name!r} that is made from files; there are {', '.join(made)}.")
    return SPLITS[name]


def read_tasks(folder: Path, split: Split) -> list[Task]:
    """The tasks of a HumanEval-Infilling split in `folder` or in its folder of that name.

    Raises InputError where the file is missing, damaged or not of the published form.
    """
    advice = f"It belongs in that folder, or in {FOLDER} there; .gz is read too."
    path = find(folder, (split.file, f"{FOLDER}/{split.file}"), advice)
    tasks = [
        Task(name=name, prefix=prompt, suffix=suffix, truth=solution, test=f"\n{test}\ncheck({entry})\n")
        for name, entry, prompt, suffix, solution, test in read_lines(path, FIELDS, "task of HumanEval-Infilling")
    ]
    if not tasks:
        raise InputError(f"{path} holds no tasks.")
    return tasks


def choose(items: Iterable[N], limit: int | None, seed: int) -> list[N]:
    """`limit` items, or all, in an order drawn by `seed`: a larger limit adds items, and every beginning is a sample.

    Ordered by hashes of their names, so the same everywhere.
    """
    return sorted(items, key=lambda item: drawn(seed, item.name))[:limit]


def drawn(seed: int, name: str) -> int:
    """A number of 64 bits that only the seed and the name decide."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big")


def find(folder: Path, names: Sequence[str], advice: str) -> Path:
    """The first of `names` that is a file in `folder`, compressed or not. Raises InputError."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.", advice="--data names the folder with the evaluation data.")
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise InputError(f"There is no {names[0]} in {folder}.", advice=advice)


def read_lines(path: Path, fields: Sequence[str], what: str) -> Iterator[list[str]]:
    """The named fields, all of them texts, of every line of a file of JSON lines. Raises InputError."""
    for number, line in _lines(path):
        try:
            values = json.loads(line)
            texts = [values[field] for field in fields]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InputError(f"Line {number} of {path} is no {what}.", advice="The file is damaged.") from None
        yield texts


def write_lines(path: Path, values: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines, all or nothing. Raises StorageError where the disk refuses."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            unfinished.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file that may be compressed."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read: {why}.") from None
