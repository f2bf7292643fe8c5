"""A corpus on disk: packed arrays and a manifest, written so that half of it can never be loaded. Knows no source.

`corpus.json` is written last and removed first. Beside it, for each split, `<split>.tokens.npy` int32,
`<split>.roles.npy` uint8 and `<split>.segments.npy` uint16, all [rows, row_tokens]: roles 0 padding, 1 suffix and
other files with their marks, 2 prefix with its mark, 3 middle with its end; segments count the examples of a row,
65535 on padding. `validation.jsonl` holds the texts of the validation files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from remask.contract.errors import InputError, RemaskError, StorageError
from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.examples import PADDING, Example

FORMAT = 1
MANIFEST = "corpus.json"
TEXTS = "validation.jsonl"
NO_SEGMENT = 65_535
PARTS: dict[str, type[np.generic]] = {"tokens": np.int32, "roles": np.uint8, "segments": np.uint16}
AGAIN = "Build it again with 'remask train corpus'."


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Memory-mapped rows of one split: tokens int32, roles uint8, segments uint16, each [rows, row_tokens]."""

    tokens: npt.NDArray[np.int32]
    roles: npt.NDArray[np.uint8]
    segments: npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A loaded corpus: its manifest and its splits."""

    folder: Path
    manifest: dict[str, Any]
    splits: dict[str, SplitRows]

    def validation_texts(self) -> Iterator[Document]:
        """The whole validation files, from which evaluation digs its own holes. Raises InputError where damaged."""
        try:
            with (self.folder / TEXTS).open(encoding="utf-8") as file:
                for line in file:
                    entry = json.loads(line)
                    yield Document(entry["package"], entry["path"], entry["text"], "validation")
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"The validation texts in {self.folder} cannot be read.", advice=AGAIN) from None


def load_corpus(folder: Path, tokenizer_sha256: str | None = None) -> Corpus:
    """Map a corpus into memory.

    Raises InputError for a missing, foreign or damaged one, and for one made with another tokenizer than the one
    whose sha256 is given.
    """
    manifest = _read_manifest(folder)
    if tokenizer_sha256 is not None and manifest["tokenizer_sha256"] != tokenizer_sha256:
        raise InputError(f"The corpus in {folder} was made with another tokenizer than the model's.", advice=AGAIN)
    splits = {name: _load_split(folder, name, facts, manifest) for name, facts in manifest["splits"].items()}
    return Corpus(folder, manifest, splits)


def write_corpus(
    folder: Path,
    manifest: Mapping[str, Any],
    splits: Mapping[str, tuple[Sequence[Example], Sequence[Sequence[int]]]],
    texts: Iterable[Document],
) -> None:
    """Write examples, packed into the rows given as lists of their numbers, and the manifest last of all.

    Raises StorageError where the disk refuses; what was there before is then still whole, or has no manifest.
    """
    width = int(manifest["row_tokens"])
    names = [f"{split}.{part}.npy" for split in splits for part in PARTS] + [TEXTS]
    with _temporary(folder, [*names, MANIFEST]) as place:
        for split, (examples, rows) in splits.items():
            _write_split({part: place[f"{split}.{part}.npy"] for part in PARTS}, examples, rows, width)
        with place[TEXTS].open("w", encoding="utf-8") as file:
            for d in texts:
                file.write(json.dumps({"package": d.package, "path": d.path, "text": d.text}) + "\n")
        place[MANIFEST].write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in [*names, MANIFEST]:
            os.replace(place[name], folder / name)


def check_writable(folder: Path) -> None:
    """Make the folder, and refuse one that holds other things than a corpus, before the work begins.

    Raises InputError or StorageError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [p.name for p in folder.iterdir() if not p.name.startswith(".")]
        if others and MANIFEST not in others:
            raise InputError(f"The folder {folder} holds other files.", advice="Name a new or empty folder.")
        probe = folder / f".remask-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be written: {error.strerror or error}.") from error


@contextmanager
def _temporary(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Path]]:
    """Temporary paths for final names; whatever happens, none of them is left."""
    place = {name: folder / f".{name}.{os.getpid()}" for name in names}
    try:
        yield place
    except OSError as error:
        raise StorageError(
            f"The corpus cannot be written to {folder}: {error.strerror or error}.",
            advice="Free some space, or build a smaller one (--tokens).",
        ) from error
    finally:
        for path in place.values():
            path.unlink(missing_ok=True)


def _write_split(
    paths: Mapping[str, Path], examples: Sequence[Example], rows: Sequence[Sequence[int]], width: int
) -> None:
    empty = {"tokens": 0, "roles": PADDING, "segments": NO_SEGMENT}
    maps = {part: _new_map(paths[part], (len(rows), width), dtype) for part, dtype in PARTS.items()}
    for number, row in enumerate(rows):
        for part, value in empty.items():
            maps[part][number] = value
        at = 0
        for segment, index in enumerate(row):
            example = examples[index]
            stop = at + len(example.tokens)
            maps["tokens"][number, at:stop] = example.tokens
            maps["roles"][number, at:stop] = example.roles
            maps["segments"][number, at:stop] = segment
            at = stop
    for array in maps.values():
        if isinstance(array, np.memmap):
            array.flush()


def _new_map(path: Path, shape: tuple[int, int], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """A new array file. Its space is claimed at once: a full disk would end a write into a hole with SIGBUS."""
    if not shape[0]:  # no map can be empty
        empty = np.zeros(shape, dtype)
        with path.open("wb") as file:
            np.save(file, empty, allow_pickle=False)
        return empty
    array: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, path.stat().st_size))
    return array


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"There is no corpus in {folder}: {MANIFEST} is missing.", advice=AGAIN)
    try:
        manifest = json.loads(path.read_text("utf-8"))
        known = manifest["format"] == FORMAT
        complete = isinstance(manifest["splits"], dict) and isinstance(manifest["row_tokens"], int)
        complete = complete and isinstance(manifest["tokenizer_sha256"], str)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"The manifest {path} cannot be read.", advice=AGAIN) from None
    if not known or not complete:
        raise InputError(f"The corpus in {folder} has a format that this version does not read.", advice=AGAIN)
    return dict(manifest)


def _load_split(folder: Path, name: str, facts: Any, manifest: Mapping[str, Any]) -> SplitRows:
    try:
        shape = (int(facts["rows"]), int(manifest["row_tokens"]))
        arrays = {part: _load_array(folder / f"{name}.{part}.npy", shape, dtype) for part, dtype in PARTS.items()}
    except (KeyError, TypeError):
        raise InputError(f"The manifest in {folder} lacks the rows of {name!r}.", advice=AGAIN) from None
    return SplitRows(**arrays)


def _load_array(path: Path, shape: tuple[int, int], dtype: type[np.generic]) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if shape[0] else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path, str(error)) from None
    if array.shape != shape or array.dtype != dtype:
        raise _damaged(path, f"it holds {array.dtype} {array.shape}, not {np.dtype(dtype)} {shape}")
    return array


def _damaged(path: Path, why: str) -> RemaskError:
    return InputError(f"The corpus file {path} is damaged or missing ({why.rstrip('.')}).", advice=AGAIN)
