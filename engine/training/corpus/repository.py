"""A user's own code as training text: tracked or trackable files only, without secrets. Runs git, nothing else."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from remask.contract.errors import InputError
from remask.grammars.language import grammars

MAX_FILE_BYTES = 1_000_000
SKIPPED_FOLDERS = {"node_modules", "__pycache__", "venv", "env", "site-packages", "dist", "build", "target", "vendor"}

_SECRET_NAME = re.compile(
    r"^\.env|^\.netrc$|^\.npmrc$|^\.pypirc$|^id_(?:rsa|dsa|ecdsa|ed25519)|\.(?:pem|key|p12|pfx|crt|cer|jks|kdbx)$"
    r"|^(?:credentials?|secrets?|passwords?)(?:\.|$)",
    re.I,
)
_SECRET_TEXT = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_\w{40}"
    rb"|\bxox[abprs]-[\w-]{10,}|\bsk-[A-Za-z0-9_-]{32,}|\bAIza[\w-]{35}|\bglpat-[\w-]{20}"
)


def read_repository(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of each source file in a language that Remask has a grammar for, in the order of the paths.

    Left out: what `.gitignore` or `.remaskignore` names, hidden files, links, files that are named like secrets or
    hold one. Raises InputError where the folder is missing or git cannot list it.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    extensions = tuple(e for g in grammars() for e in g.extensions)
    for name in _names(folder):
        path = folder / name
        if not name.lower().endswith(extensions) or _is_hidden(name) or _SECRET_NAME.search(path.name):
            continue
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            continue
        data = _read(path)
        if data is not None and not _SECRET_TEXT.search(data):
            yield name, data


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:  # not ours to read: no training text
        return None


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part in SKIPPED_FOLDERS for part in name.split("/"))


def _names(folder: Path) -> list[str]:
    inside = _git(folder, "rev-parse", "--is-inside-work-tree")
    if inside is None or inside.strip() != b"true":
        return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir())
    listed = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        raise InputError(f"git cannot list the files of {folder}.")
    ignored = _ignored(folder, listed)
    return sorted({n.decode("utf-8", "replace") for n in listed.split(b"\0") if n and n not in ignored})


def _ignored(folder: Path, listed: bytes) -> set[bytes]:
    """Of NUL-separated names, those that an ignore file names, even if they are tracked."""
    rules = folder / ".remaskignore"
    own = ["-c", f"core.excludesFile={rules.resolve()}"] if rules.is_file() else []
    found = _git(folder, *own, "check-ignore", "--no-index", "-z", "--stdin", given=listed)
    return set((found or b"").split(b"\0"))


def _git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes | None:
    """What git prints; None where it is not installed or fails (check-ignore: where nothing is ignored)."""
    command = ["git", "-C", str(folder), "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
