"""Evaluation tasks: a hole with its true text, and how to tell whether a text does the job. Knows no model.

HumanEval-Infilling (Bavarian et al. 2022, github openai/human-eval-infilling) is read in its published form.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """

    name: str
    file: str = ""
    end: EndRule | None = None
    max_tokens: int = 64


def whole_line(draft: str) -> int | None:
    """Behind the line feed of the first line that holds something: a middle of the single-line split."""
    end = first_line_end(draft)
    return None if end is None else end + 1


SPLITS = {
    s.name: s
    for s in (
        Split(name="single-line", file="HumanEval-SingleLineInfilling.jsonl", end=whole_line),
        Split(name="multi-line", file="HumanEval-MultiLineInfilling.jsonl", max_tokens=192),
        Split(name="random-span", file="HumanEval-RandomSpanInfilling.jsonl", max_tokens=128),
        Split(name="random-span-light", file="HumanEval-RandomSpanInfillingLight.jsonl", max_tokens=128),
    )
}


def split_named(name: str) -> Split:
    """The split called `name`. Raises InputError, which lists them."""
    if name not in SPLITS:
        raise InputError(f"There is no split {name!r}; there are {', '.join(SPLITS)}.")
    return SPLITS[name]


def read_tasks(folder: Path, split: Split) -> list[Task]:
    """The tasks of a HumanEval-Infilling split in `folder` or in its folder of that name.

    Raises InputError where the file is missing, damaged or not of the published form.
    """
    path = _find(folder, split.file)
    tasks = [_task(path, number, line) for number, line in _lines(path)]
    if not tasks:
        raise InputError(f"{path} holds no tasks.")
    return tasks


def choose(tasks: Iterable[Task], limit: int | None, seed: int) -> list[Task]:
    """`limit` tasks, or all, in an order drawn by `seed`: a larger limit adds tasks, and every beginning is a sample.

    Ordered by hashes of their names, so the same everywhere.
    """

    def place(task: Task) -> bytes:
        return hashlib.sha256(f"{seed}:{task.name}".encode()).digest()

    return sorted(tasks, key=place)[:limit]


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


def _find(folder: Path, name: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.", advice="--data names the folder with the evaluation data.")
    for base in (folder, folder / FOLDER):
        for path in (base / name, base / f"{name}.gz"):
            if path.is_file():
                return path
    raise InputError(
        f"There is no {name} in {folder}.", advice=f"It belongs in that folder, or in {FOLDER} there; .gz is read too."
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file that may be compressed."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read: {why}.") from None


def _task(path: Path, number: int, line: str) -> Task:
    try:
        values = json.loads(line)
        name, entry, prompt, suffix, solution, test = (values[field] for field in FIELDS)
        if not all(isinstance(value, str) for value in (name, entry, prompt, suffix, solution, test)):
            raise TypeError
        if not entry.isidentifier():
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(
            f"Line {number} of {path} is no task of HumanEval-Infilling.", advice="The file is damaged: get it again."
        ) from None
    return Task(name=name, prefix=prompt, suffix=suffix, truth=solution, test=f"\n{test}\ncheck({entry})\n")
