"""The definitions of the workspace's files, kept in a thread of its own. Knows files and trees, no document.

It never holds the loop up: files are small (a parse holds the interpreter), it rests between two of them, and it stops
at a number of files. Files that an exclusion names are never opened.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from remask.grammars import GrammarError, grammar_for_path
from remask.lsp_server.definitions import Definition, called_names, definitions

log = logging.getLogger(__name__)

MAX_FILES = 4_000
MAX_BYTES = 100_000
MAX_DEFINITIONS = 200  # of one file
REST_S = 0.002
_NEVER = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build", "vendor"})

Hides = Callable[[Path, bool], bool]


@dataclass(frozen=True, slots=True)
class _File:
    definitions: tuple[Definition, ...]
    called: frozenset[str]


class Index:
    """Definitions by name. `hides(path, is_folder)` says what must not be opened.

    It is called in the thread, and by whoever shows what was found: the rules may have changed since.
    """

    def __init__(self, hides: Hides) -> None:
        self._hides = hides
        self._files: dict[Path, _File] = {}
        self._by_name: dict[str, dict[Path, Definition]] = defaultdict(dict)
        self._lock = threading.Lock()
        self._wishes: queue.SimpleQueue[list[Path] | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.settled = threading.Event()  # nothing is waiting to be read

    def __len__(self) -> int:
        return len(self._files)

    def start(self) -> None:
        """Begin; call `read` to say what."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="index", daemon=True)
            self._thread.start()

    def read(self, paths: Iterable[Path]) -> None:
        """Read these files, and all in these folders, again; what is gone is forgotten."""
        self.settled.clear()
        self._wishes.put(list(paths))

    def close(self) -> None:
        """End the thread after the file it is at."""
        self._stop.set()
        self._wishes.put(None)

    def hides(self, path: Path) -> bool:
        """Whether this file must not be shown (any more), whatever is known of it."""
        return self._hides(path, False)

    def find(self, name: str, beside: Path | None) -> list[tuple[Path, Definition]]:
        """Where a name is defined, in files other than `beside`; those nearest to it first."""
        with self._lock:
            found = [(path, one) for path, one in self._by_name.get(name, {}).items() if path != beside]
        return sorted(found, key=lambda pair: _distance(pair[0], beside))

    def callers(self, name: str, beside: Path | None) -> list[Path]:
        """Files that call a name and do not define it, those nearest to `beside` first."""
        with self._lock:
            defining = self._by_name.get(name, {})
            found = [path for path, file in self._files.items() if name in file.called and path not in defining]
        return sorted(found, key=lambda path: _distance(path, beside))

    def _run(self) -> None:
        while (wish := self._wishes.get()) is not None and not self._stop.is_set():
            for path in wish:
                try:
                    self._read_all(path)
                except (OSError, ValueError) as error:  # no file can have this name
                    log.debug("a path is not indexed (%s)", type(error).__name__)
            if self._wishes.empty():
                self.settled.set()

    def _read_all(self, path: Path) -> None:
        if grammar_for_path(path) is None:
            self._forget_in(path)
        if path.is_dir():
            self._forget_in(path)
            if self._hides(path, True):
                return
            for folder, names, files in os.walk(path):
                base = Path(folder)
                names[:] = [name for name in sorted(names) if name not in _NEVER and not self._hides(base / name, True)]
                for name in sorted(files):
                    if self._stop.is_set() or len(self._files) >= MAX_FILES:
                        return
                    self._read_one(base / name)
        else:
            self._read_one(path)

    def _read_one(self, path: Path) -> None:
        try:
            grammar = grammar_for_path(path)
            if grammar is None:
                return
            text = "" if self._hides(path, False) else _read(path)
            found = tuple(definitions(grammar, text))[:MAX_DEFINITIONS] if text else ()
            file = _File(found, called_names(grammar, text)) if text else None
        except (OSError, ValueError, GrammarError, RecursionError) as error:
            log.debug("a file is not indexed (%s)", type(error).__name__)
            file = None
        self._replace(path, file)
        self._stop.wait(REST_S)

    def _replace(self, path: Path, file: _File | None) -> None:
        with self._lock:
            old = self._files.pop(path, None)
            for one in old.definitions if old else ():
                self._by_name[one.name].pop(path, None)
            if file is not None and len(self._files) < MAX_FILES:
                self._files[path] = file
                for one in file.definitions:
                    self._by_name[one.name].setdefault(path, one)

    def _forget_in(self, folder: Path) -> None:
        for path in [path for path in list(self._files) if path.is_relative_to(folder)]:
            self._replace(path, None)


def _read(path: Path) -> str:
    """The file's text; nothing for a large one, a pipe, or one with bytes that no source has."""
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        return ""
    data = path.read_bytes()
    return "" if b"\0" in data else data.decode("utf-8", "replace").replace("\r\n", "\n")


def _distance(path: Path, beside: Path | None) -> tuple[int, str]:
    if beside is None:
        return 0, str(path)
    common = len(os.path.commonpath((path, beside))) if path.anchor == beside.anchor else 0
    return -common, str(path)
