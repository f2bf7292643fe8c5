"""The log in a process of its own: what reaches standard error and what does not."""

import subprocess
import sys


def log_of(code: str) -> str:
    script = f"import logging; from remask.lsp_server import logs; listener = logs.set_up()\n{code}\nlistener.stop()"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr


def test_our_own_lines_are_whole() -> None:
    assert "remask: INFO: 5 tokens" in log_of("logging.getLogger('remask.x').info('%d tokens', 5)")


def test_other_peoples_lines_lose_their_arguments() -> None:
    log = log_of(
        "logging.getLogger('pygls').info('Sending %s', 'marker')\n"
        "logging.getLogger('pygls').error('Failed %s %r', 'marker', 'marker')\n"
        "try: raise ValueError('marker')\n"
        "except ValueError: logging.getLogger('asyncio').exception('task')"
    )
    assert "marker" not in log
    assert "Failed … …" in log
    assert "task (ValueError)" in log
    assert "Sending" not in log


def test_a_reader_that_reads_nothing_stops_nothing() -> None:
    code = (
        "import logging, os; from remask.lsp_server import logs; logs.set_up()\n"
        "for n in range(50_000): logging.getLogger('remask').info('%s', 'x' * 100)\n"
        "print('done', flush=True); os._exit(0)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        process.wait()
