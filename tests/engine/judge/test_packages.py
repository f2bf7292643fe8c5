"""Asking another process what packages define: bounded, remembered, and silent when it fails."""

import subprocess
import sys
import time

import jedi
import pytest

from remask.engine.judge.jedi_worker import judge
from remask.engine.judge.packages import FAILURES, Packages

ECHO = """
import json, sys
for line in sys.stdin:
    question = json.loads(line)
    for expression in question["expressions"]:
        known = {"yes": True, "no": False}.get(expression.rpartition(".")[2])
        print(json.dumps({"imports": question["imports"], "expression": expression, "known": known}), flush=True)
"""
DEAF = "import sys\nfor line in sys.stdin: pass"
DEAD = "raise SystemExit"
DEADLINE_S = 60


@pytest.fixture
def packages(request):
    made = Packages([sys.executable, "-c", request.param])
    yield made
    made.close()


def until(condition):
    """Ask again until the other process has got so far."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "it never came"


@pytest.mark.parametrize("packages", [ECHO], indirect=True)
def test_a_first_question_is_not_waited_for_and_its_answer_is_kept(packages):
    asked = ["m.yes", "m.no", "m.else"]
    assert packages.judge("import m", asked) == [None, None, None]
    until(lambda: packages.judge("import m", asked) == [True, False, None])
    # Warm now: a new question is waited for.
    assert packages.judge("import n", ["n.no", "n.yes"], wait_ms=DEADLINE_S * 1e3) == [False, True]
    assert packages.judge("import m", ["m.no"], wait_ms=0) == [False]


@pytest.mark.parametrize("packages", [DEAF], indirect=True)
def test_a_worker_that_does_not_answer_holds_nobody_up(packages, monkeypatch):
    assert packages.judge("import m", ["m.a"], wait_ms=DEADLINE_S * 1e3) == [None]
    monkeypatch.setattr("remask.engine.judge.packages.GIVE_UP_S", 0.0)
    worker = packages._process
    packages.judge("import m", ["m.a"])
    assert worker.poll() is not None


@pytest.mark.parametrize("packages", [DEAD], indirect=True)
def test_a_worker_that_dies_is_started_again_a_few_times_only(packages):
    until(lambda: packages.judge("import m", ["m.a"]) == [None] and packages._failures >= FAILURES)
    assert packages.judge("import m", ["m.a"]) == [None]
    assert packages._process is None


@pytest.mark.parametrize("packages", [ECHO], indirect=True)
def test_a_worker_that_is_killed_between_two_questions_is_no_error(packages):
    until(lambda: packages.judge("import m", ["m.yes"]) == [True])
    for number in range(3):
        packages._process.kill()
        packages._process.wait()
        packages.judge("import m #" + "x" * 9_000, [f"m.a{number}"])
        until(lambda n=number: packages.judge("import m", [f"m{n}.yes"]) == [True])


def test_a_command_that_cannot_start_is_no_error():
    packages = Packages(["/nowhere/at/all"])
    for _ in range(FAILURES + 1):
        assert packages.judge("import m", ["m.a"]) == [None]


@pytest.mark.parametrize("packages", [ECHO], indirect=True)
def test_nothing_is_started_for_nothing(packages):
    assert packages.judge("import m", []) == []
    assert packages._process is None


@pytest.mark.parametrize(
    ("imports", "expression", "known"),
    [
        ("import os", "os.getcwd", True),
        ("import os", "os.getcvd", False),
        ("from json import decoder as d", "d.JSONDecoderr", False),
        ("import no_such_package_anywhere", "no_such_package_anywhere.x", None),
        ("from no_such_package_anywhere import y", "y.x", None),
        ("import (", "os.x", None),
    ],
)
def test_what_jedi_knows(imports, expression, known, tmp_path, monkeypatch):
    monkeypatch.setattr(jedi.settings, "cache_directory", str(tmp_path))
    assert judge(jedi, imports, expression) is known


def test_a_folder_that_is_opened_cannot_put_its_own_modules_into_the_worker(tmp_path):
    """`python -m` would put the current folder first on the module path: `jedi.py` of any project would run."""
    (tmp_path / "jedi.py").write_text("open('ran', 'w').close()")
    command = [*Packages()._command, str(tmp_path / "kept")]
    subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ask", ["", '{"imports": "import os", "expressions": ["os.getcwd"]}\n'], ids=["idle", "asked"])
def test_a_worker_whose_engine_was_killed_leaves_no_folder(tmp_path, ask):
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "parsed").write_text("")
    command = [sys.executable, "-P", "-m", "remask.engine.judge.jedi_worker", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        worker.stdout.close()  # as the system does for a dead engine, with the worker's input
        worker.stdin.write(ask.encode())
        worker.stdin.close()
        assert worker.stderr.read() == b""
        assert worker.wait(DEADLINE_S) == 0
    assert not folder.exists()
