"""Runs a program in a process of its own, under limits, and says whether it came to its end. Knows no model.

What holds the program back is in `jail`; here are the fresh folder, the clock, and the end of the whole process group.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from remask.contract.errors import EngineError

CPU_SECONDS = 3  # the published harness allows 3 seconds of wall time
WALL_SECONDS = 15.0  # a busy machine must not fail a program
MEMORY_BYTES = 1 << 30

_JAIL = Path(__file__).with_name("jail.py")
_ALWAYS = ("limits", "audit hook")
_HARMLESS = "import collections, hashlib, itertools, math, random, re, string, typing\nassert math.sqrt(4) == 2\n"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`passed`: the program ran to its end. `isolation`: what held it back besides limits and the audit hook."""

    passed: bool
    timed_out: bool = False
    isolation: tuple[str, ...] = ()


def run_program(
    program: str, *, cpu_seconds: int = CPU_SECONDS, wall_seconds: float = WALL_SECONDS, memory: int = MEMORY_BYTES
) -> Verdict:
    """Run Python source; it passes by reaching its last line. Whatever it starts or writes is gone afterwards.

    Its output is thrown away, and its exit code proves nothing: a token that only the jail knows does.
    """
    token = secrets.token_hex(16).encode()
    reading, writing = os.pipe()
    try:
        with tempfile.TemporaryDirectory(prefix="remask-eval-", ignore_cleanup_errors=True) as folder:
            process = subprocess.Popen(
                # No site packages, no paths of the user's; the seed makes the order of sets the same every time.
                [sys.executable, "-P", "-s", "-S", str(_JAIL), str(writing), str(memory), str(cpu_seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
                pass_fds=(writing,),
                start_new_session=True,
            )
            timed_out = _finish(process, token + b"\n" + program.encode("utf-8", "replace"), wall_seconds)
        os.set_blocking(reading, False)
        done, _, proof = _read(reading).partition(b"\n")
    finally:
        os.close(reading)
        os.close(writing)
    timed_out = timed_out or process.returncode == -signal.SIGXCPU
    return Verdict(proof == token, timed_out, tuple(name for name in done.decode().split(",") if name))


def isolation() -> str:
    """What holds programs back on this machine, in words. Raises EngineError where they cannot be run at all."""
    verdict = run_program(_HARMLESS)
    if not verdict.passed:
        raise EngineError(
            "Programs cannot be run under limits here, so no tests can be.",
            advice="Run this on Linux or macOS, or take a split without tests.",
        )
    return ", ".join((*_ALWAYS, *verdict.isolation))


def _finish(process: subprocess.Popen[bytes], text: bytes, wall_seconds: float) -> bool:
    """Feed the process and wait for it; True where its time ran out. Its group is killed in any case."""
    try:
        process.communicate(text, timeout=wall_seconds)
    except subprocess.TimeoutExpired:
        return True
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
    return False


def _read(descriptor: int) -> bytes:
    """What lies in the pipe; whoever may still hold its other end is not waited for."""
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, 4096)
    return b""
