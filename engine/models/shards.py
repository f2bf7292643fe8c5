"""The files of a checkpoint folder that hold tensors: which they are, whether they are whole. Knows no shapes.

Only safetensors are opened; a pickle, which could run code, is refused.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

from remask.contract.errors import ModelError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
SUMS = "SHA256SUMS"


def shards_of(folder: Path) -> dict[Path, list[str]]:
    """The shards in a folder and the names of the tensors in each. Raises ModelError where there are none."""
    if (folder / INDEX).is_file():
        try:
            placed = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
            shards: dict[Path, list[str]] = {}
            for name, file in placed.items():
                shards.setdefault(folder / Path(file).name, []).append(name)
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise ModelError(f"The index {folder / INDEX} cannot be read.") from None
        return shards
    if (folder / SINGLE).is_file():
        with open_shard(folder / SINGLE) as shard:
            return {folder / SINGLE: list(shard.keys())}
    if any(path.suffix in {".bin", ".pt", ".pth", ".pkl", ".ckpt"} for path in folder.iterdir()):
        raise ModelError(
            f"The checkpoint in {folder} is a pickle, which can run code when it is loaded.",
            advice="Convert it to safetensors.",
        )
    raise ModelError(f"There are no weights in {folder}: no {SINGLE} and no {INDEX}.")


def holds_int8(folder: Path) -> bool:
    """Whether the matrices are stored as int8 rows, as the default model's are. Raises ModelError."""
    names = [(path, name) for path, names in shards_of(folder).items() for name in names if name.endswith("_scale")]
    if not names or not names[0][0].is_file():
        return False
    path, name = names[0]
    with open_shard(path) as shard:
        matrix = name.removesuffix("_scale")
        return matrix in set(shard.keys()) and shard.get_slice(matrix).get_dtype() == "I8"


def fingerprint(folder: Path) -> str:
    """A short name for exactly these files, by size and time: KV written by other weights must never be read back."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.suffix in {".safetensors", ".json"}):
        status = path.stat()
        digest.update(f"{path.name}:{status.st_size}:{status.st_mtime_ns};".encode())
    return digest.hexdigest()[:16]


def open_shard(path: Path) -> safe_open:
    """An open safetensors file, to be used in a `with`. Raises ModelError where it is damaged."""
    try:
        return safe_open(str(path), framework="pt", backend="pread")  # a map would count as memory
    except (OSError, SafetensorError) as error:
        raise damaged(path, str(error)) from None


def checksums(folder: Path) -> dict[str, str]:
    """What SHA256SUMS says of each file; nothing where there is none. Raises ModelError."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"The file {folder / SUMS} cannot be read: {error}.") from None
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def verify(path: Path, expected: str | None) -> None:
    """Raise ModelError where a file is missing, or its sha256 is not the expected one (None: any is)."""
    try:
        there = path.is_file()
    except OSError:  # a name that no file can have
        there = False
    if not there:
        raise ModelError(
            f"The weight shard {path} is missing.", advice="Install Remask again, or name a whole checkpoint."
        )
    if expected is None:
        return
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != expected:
            raise damaged(path, "its checksum differs")


def damaged(path: Path, why: str) -> ModelError:
    """The error for a file that cannot be what it was."""
    return ModelError(
        f"The weight shard {path} is damaged ({why}).", advice="Install Remask again, or name a whole checkpoint."
    )
