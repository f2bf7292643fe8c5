"""The real engine process around a Completer that does what the text before the cursor tells it."""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from remask.contract.errors import ModelError
from remask.contract.messages import CompletionRequest, CompletionResult, Reason
from remask.contract.places import runtime_dir
from remask.engine.service.process import leave, serve


class ScriptedCompleter:
    """Answers "pass" unless the last line says otherwise."""

    def __init__(self, note: Path | None = None) -> None:
        self.saved: list[str] = []
        self.forgotten: list[str] = []
        self.note = note
        self.waited = runtime_dir() / "waited"

    def save(self, document: str) -> None:
        self.saved.append(document)
        if self.note:
            self.note.write_text("".join(f"{one}\n" for one in self.saved))

    def forget(self, document: str) -> None:
        self.forgotten.append(document)

    def complete(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        on_draft: Callable[[str], None] | None = None,
    ) -> CompletionResult:
        wish = request.prefix.rpartition("\n")[2]
        text, reason = "pass", Reason.END
        if "# block" in wish:
            while not cancelled():
                time.sleep(0.001)
            text, reason = "", Reason.CANCELLED
        elif self.is_deaf_to(wish):
            threading.Event().wait()
        elif "# die" in wish:
            os._exit(9)
        elif "# raise" in wish:
            raise RuntimeError("secret words of the source")
        elif "# drafts" in wish and on_draft is not None:
            for length in (1, 2, 3):
                on_draft(text[:length])
        elif "# saved" in wish:
            text = f"{self.saved} {self.forgotten}"
        elif "# deadline" in wish:
            text = str(request.deadline_ms)
        return CompletionResult(text=text, reason=reason, language=request.language)

    def is_deaf_to(self, wish: str) -> bool:
        first = "# once" in wish and not self.waited.exists()
        if first:
            self.waited.touch()
        return first or "# deaf" in wish

    def describe(self) -> dict[str, str]:
        return {"model": "scripted"}


def load(options: argparse.Namespace) -> ScriptedCompleter:
    if options.broken:
        raise ModelError("The weight shard is damaged.", advice="Install Remask again.")
    if options.slow:
        threading.Event().wait()
    if options.once and options.once.exists():
        os._exit(9)
    if options.once:
        options.once.touch()
    print("a library that prints")
    return ScriptedCompleter(options.note)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--shared-as", type=Path)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--once", type=Path)
    parser.add_argument("--note", type=Path)
    options = parser.parse_args()
    leave(serve(options.socket, lambda: load(options), options.shared_as))
