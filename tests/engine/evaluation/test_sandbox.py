"""Programs under test: what passes, what is refused, and that nothing outlives its limits."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from remask.engine.evaluation import jail
from remask.engine.evaluation.jail import guard
from remask.engine.evaluation.sandbox import isolation, run_program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are run under POSIX limits")

JAIL = Path(jail.__file__)

REFUSED = {
    "write a file": "open('left', 'w')",
    "append to a file": "open({target!r}, 'a')",
    "open for writing": "__import__('os').open({target!r}, 1 | 64)",
    "remove a file": "__import__('os').remove({target!r})",
    "make a folder": "__import__('os').mkdir('folder')",
    "fork": "__import__('os').fork()",
    "start a process": "__import__('subprocess').run(['true'])",
    "use a shell": "__import__('os').system('true')",
    "fork by multiprocessing": "__import__('multiprocessing').Process(target=print).start()",
    "replace the process": "__import__('os').execv('/bin/true', ['true'])",
    "kill its parent": "os = __import__('os'); os.kill(os.getppid(), 9)",
    "call the C library": "__import__('ctypes').CDLL(None)",
    "connect": "__import__('socket').create_connection(('127.0.0.1', 9))",
    "listen": "__import__('socket').socket().bind(('127.0.0.1', 0))",
    "look up a host": "__import__('socket').getaddrinfo('localhost', 80)",
    "take much memory": "'x' * (1 << 32)",
}


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_refused(code, tmp_path):
    target = tmp_path / "kept"
    target.write_text("as it was")
    lines = code.format(target=str(target)) if "{target" in code else code
    refused = f"try:\n    {lines}\nexcept (OSError, MemoryError):\n    pass\nelse:\n    raise AssertionError\n"
    assert run_program(refused).passed
    assert target.read_text() == "as it was"


@pytest.mark.parametrize(
    "program",
    ["assert True", "import math, random\nassert math.pi > 3", "print('x' * 10_000_000)", "x = {'ä': '\\u1234'}"],
)
def test_passes(program):
    assert run_program(program).passed


@pytest.mark.parametrize(
    "program",
    [
        "assert False",
        "raise SystemExit",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "this is no Python",
        "import os, signal; os.abort()",
        "def f(): f()\nf()",
    ],
)
def test_only_the_end_of_the_program_is_a_pass(program):
    assert not run_program(program + "\n").passed


def test_an_endless_loop_ends_with_its_processor_time():
    verdict = run_program("while True: pass", cpu_seconds=1)
    assert (verdict.passed, verdict.timed_out) == (False, True)


def test_an_endless_wait_ends_with_the_clock():
    verdict = run_program("import time; time.sleep(3600)", wall_seconds=0.5)
    assert (verdict.passed, verdict.timed_out) == (False, True)


def test_a_flood_of_output_goes_nowhere(capfd):
    verdict = run_program("while True: print('x' * 100_000)", cpu_seconds=1)
    assert not verdict.passed
    assert capfd.readouterr() == ("", "")


def test_a_fork_bomb_starts_nothing():
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    before = len(os.listdir("/proc")) if os.path.isdir("/proc") else 0
    assert not run_program(bomb, cpu_seconds=1).passed
    assert not before or len(os.listdir("/proc")) < before + 50


def test_threads_left_behind_hold_nobody_up():
    started = time.monotonic()
    program = "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()\n"
    run_program(program, wall_seconds=60)
    assert time.monotonic() - started < 50


def test_the_environment_is_empty(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert run_program("import os\nassert 'SECRET_TOKEN' not in os.environ").passed


def test_sets_have_the_same_order_in_every_run():
    assert run_program("import sys\nassert not sys.flags.hash_randomization").passed


def test_the_folder_is_fresh_and_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run_program("import os\nassert os.listdir() == []").passed
    assert list(tmp_path.iterdir()) == []


def test_isolation_is_said_in_words():
    assert isolation().startswith("limits, audit hook")


WITHOUT_HOOK = "import jail, sys; jail.guard = lambda *_: None; sys.argv[1:] = ['1', str(1 << 30), '3']; jail.main()"


@pytest.mark.parametrize(
    ("by", "code"),
    [
        ("landlock", "open({target!r}, 'r+')"),
        ("landlock", "__import__('os').remove({target!r})"),
        ("landlock", "__import__('os').execv('/bin/true', ['true'])"),
        ("network namespace", "__import__('socket').socket().connect(('127.0.0.1', {port}))"),
    ],
)
def test_the_kernel_refuses_without_the_hook(by, code, tmp_path):
    if by not in isolation():
        pytest.skip(f"the kernel here allows no {by}")
    target = tmp_path / "kept"
    target.write_text("as it was")
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = code.format(target=str(target), port=server.getsockname()[1])
        program = f"try:\n    {line}\nexcept OSError:\n    pass\nelse:\n    raise AssertionError\n"
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_HOOK],
            input=f"token\n{program}".encode(),
            cwd=JAIL.parent,
            capture_output=True,
            timeout=60,
        )
    assert done.stdout.endswith(b"\ntoken"), done.stderr
    assert target.read_text() == "as it was"


@pytest.mark.parametrize("event", ["socket.connect", "subprocess.Popen", "os.fork", "os.remove", "ctypes.dlopen"])
def test_the_hook_refuses_without_the_kernel(event):
    with pytest.raises(PermissionError):
        guard(event, ())


def test_the_hook_lets_files_be_read():
    guard("open", ("x", "r", os.O_RDONLY | os.O_CLOEXEC))
    guard("import", ("math",))
    with pytest.raises(PermissionError):
        guard("open", ("x", None, os.O_RDWR))
