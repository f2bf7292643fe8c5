"""Completers without a model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from remask.contract.errors import InputError, StorageError
from remask.contract.messages import CompletionRequest, CompletionResult, Reason


class FakeCompleter:
    """Answers the prefix; does as the prefix says where it is one of a few words."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.threads: set[str] = set()
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def complete(self, request: CompletionRequest, cancelled: Callable[[], bool]) -> CompletionResult:
        self.started.append(request.prefix)
        self.threads.add(threading.current_thread().name)
        self.entered.set()
        reason = Reason.END
        if request.prefix == "wait":
            self.go_on.wait(10)
        elif request.prefix == "until cancelled":
            while not cancelled():
                self.go_on.wait(0.001)
            reason = Reason.CANCELLED
        elif request.prefix == "bad input":
            raise InputError("No such language.", advice="Use another.")
        elif request.prefix == "disk full":
            raise StorageError("The disk is full.")
        elif request.prefix == "bug":
            raise RuntimeError(f"{request.document} words of the source")
        return CompletionResult(
            text=f"{request.prefix} {request.deadline_ms}", reason=reason, language=request.language
        )

    def describe(self) -> dict[str, Any]:
        return {"model": "fake"}


@pytest.fixture
def completer() -> FakeCompleter:
    return FakeCompleter()
