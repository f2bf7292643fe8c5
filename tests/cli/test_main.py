"""The command as a user meets it: one sentence on stderr, an exit code, never a traceback."""

import os
import subprocess
import sys

import pytest

from remask.cli.main import run_command


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "remask.cli", *arguments], capture_output=True, text=True, timeout=60, **options
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["complete", "missing.py", "--at", "1:1"], "There is no file missing.py."),
        (["complete", "{file}"], "Name one position with --at LINE:COL."),
        (["complete", "{file}", "--at", "1:1", "--at", "1:2"], "--at is given more than once."),
        (["complete", "{file}", "--at", "9:1"], "there is no line 9."),
        (["complete", "{file}", "--at", "1:1", "--policy", "magic"], "There is no policy 'magic'"),
        (["complete", "{file}", "--at", "1:1", "--max-tokens", "0"], "'--max-tokens': 0 is not in the range"),
        (["complete", "{file}", "--at", "1:1", "--deadline", "-5"], "'--deadline': -5 is not in the range"),
        (["complete", "{file}", "--at", "1:1", "--extent", "page"], "'page' is not one of"),
        (["complete", "{file}", "--at", "1:1", "--model", "nowhere"], "no checkpoint folder nowhere"),
        (["complete", "{file}", "--at", "1:1", "--dtype", "int3"], "not 'int3'"),
        (["complete", "{file}", "--at", "1:1", "--device", "warp"], "The device 'warp' is not available"),
        (["complete"], "Missing argument 'FILE'. Try 'remask complete --help'."),
        (["complete", "--nonsense"], "No such option"),
        (["fly"], "No such command 'fly'. Try 'remask --help'."),
        (["bench", "decode", "--prompts", "0"], "Try 'remask bench decode --help'."),
    ],
)
def test_failures_are_one_sentence(arguments, sentence, file, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code = run_command([a.format(file=file) for a in arguments])
    captured = capsys.readouterr()
    assert code != 0
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_no_arguments_show_the_help(capsys):
    assert run_command([]) == 0
    assert "complete" in capsys.readouterr().out


def test_help_and_language_server_command_load_no_torch():
    program = (
        "import sys; from remask.cli.main import run_command; run_command(['--help']); "
        "sys.exit('torch' in sys.modules or 'tokenizers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60).returncode == 0


def test_full_output_device_is_one_sentence():
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "remask.cli", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 5
    assert done.stderr == "remask: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["complete", "missing.py", "--at", "1:1"]])
def test_closed_outputs_are_no_traceback(arguments):
    program = f"exec {sys.executable} -m remask.cli {' '.join(arguments)} >&-"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr


def test_narrow_encodings_replace_what_they_cannot_show(file):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = run("complete", str(file), "--at", "1:99", env=environment)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_half_characters_in_typed_text_are_one_sentence(file, capsys):
    assert run_command(["complete", str(file), "--at", "1:1", "--typed", "\udcff"]) == 2
    assert "half of a character" in capsys.readouterr().err


def test_a_defect_is_one_sentence_and_says_how_to_see_more(monkeypatch, capsys, file):
    def broken(*_args, **_kwargs):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("remask.cli.complete.load_engine", broken)
    assert run_command(["complete", str(file), "--at", "1:1"]) == 70
    error = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in error
    assert error.count("\n") == 1


def test_version():
    assert run("--version").stdout.startswith("remask")
