"""What installed Python packages define, asked of jedi in a process of its own, within a time bound.

An answer that is late is not waited for: it counts as not known, and is there for the next draft that asks the same.
Knows nothing of tokens or of what is done with an answer.
"""

from __future__ import annotations

import json
import logging
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

log = logging.getLogger(__name__)

WAIT_MS = 25.0
"""How long a draft waits for an answer."""

GIVE_UP_S = 120.0
"""A worker that has not answered for so long is ended; a package as large as torch takes half a minute to read."""

MAX_TEXT = 10_000  # characters of imports
MAX_PLACES = 16
MAX_KEPT = 512
FAILURES = 3  # after so many no further worker is started

Known = bool | None
Key = tuple[str, str]  # the imports of a file, and an expression below them


class Packages:
    """One worker, started when first asked. Safe to share between drafts of one thread."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = list(command or (sys.executable, "-P", "-m", "remask.engine.judge.jedi_worker"))
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._asked: set[Key] = set()  # what the worker is at
        self._since = 0.0  # when it was asked or answered last
        self._failures = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of what the worker keeps
        self._warm = False  # it has answered once
        self._kept: dict[Key, Known] = {}

    def judge(self, imports: str, expressions: Sequence[str], wait_ms: float = WAIT_MS) -> list[Known]:
        """Whether the attributes that dotted expressions end with exist, below these imports. Never raises.

        None for what is not known, or not in time. A worker that is still at its first question is not waited for.
        """
        if not expressions or len(imports) > MAX_TEXT:
            return [None] * len(expressions)
        keys = [(imports, expression) for expression in expressions]
        wanted = set(keys)
        self._collect(wanted, 0.0)
        missing = [key for key in dict.fromkeys(keys) if key not in self._kept][:MAX_PLACES]
        if missing and not self._asked and self._ask(missing) and self._warm:
            self._collect(wanted, wait_ms / 1e3)
        return [self._kept.get(key) for key in keys]

    def close(self) -> None:
        """End the worker."""
        process, self._process, self._asked, self._warm = self._process, None, set(), False
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):  # what a dead worker was not told is still in the pipe's buffer
                        stream.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _ask(self, keys: list[Key]) -> bool:
        process = self._worker()
        if process is None or process.stdin is None:
            return False
        question = {"imports": keys[0][0], "expressions": [expression for _, expression in keys]}
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        except OSError:
            self._end("it ended")
            return False
        self._asked, self._since = set(keys), time.monotonic()
        return True

    def _collect(self, wanted: set[Key], wait_s: float) -> None:
        """Take the answers that are there, and wait so long for those that are wanted."""
        deadline = time.monotonic() + wait_s
        while self._asked:
            late = not (self._asked & wanted)
            try:
                answer = json.loads(self._answers.get(timeout=0 if late else max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                if time.monotonic() - self._since > GIVE_UP_S:
                    self._end("it did not answer")
                return
            except ValueError:
                self._end("it ended")
                return
            self._keep((answer["imports"], answer["expression"]), answer["known"])

    def _keep(self, key: Key, known: Known) -> None:
        self._asked.discard(key)
        self._since, self._warm = time.monotonic(), True
        self._kept[key] = known
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]

    def _worker(self) -> subprocess.Popen[str] | None:
        if self._process is None and self._failures < FAILURES:
            try:
                self._folder = tempfile.TemporaryDirectory(prefix="remask-jedi-", ignore_cleanup_errors=True)
                self._process = subprocess.Popen(
                    [*self._command, self._folder.name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                self._end(f"it cannot start ({error})")
                return None
            self._answers = queue.SimpleQueue()
            threading.Thread(
                target=_read, args=(self._process, self._answers), name="names of packages", daemon=True
            ).start()
        return self._process

    def _end(self, why: str) -> None:
        """Let go of the worker; one that never answered counts as a failure."""
        self._failures += not self._warm
        log.info("attributes of installed packages are not judged for now: %s", why)
        self.close()


def _read(process: subprocess.Popen[str], answers: queue.SimpleQueue[str]) -> None:
    """Pass the worker's lines on; an empty one says that it has ended."""
    assert process.stdout is not None
    try:
        for line in process.stdout:
            answers.put(line)
    except ValueError:  # closed meanwhile
        pass
    answers.put("")
