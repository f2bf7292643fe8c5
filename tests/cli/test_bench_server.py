"""The benchmark of the server runs and reports; its numbers are nobody's concern here."""

import json
import subprocess
import sys


def test_it_reports_every_part():
    command = [sys.executable, "-m", "remask.cli", "bench", "server", "--json", "--requests", "10", "--documents", "10"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    assert set(report) == {
        *("start_ms", "inline_completion_ms", "did_change_ms", "document_apply_ms", "memory_mb", "exit_ms")
    }
    assert set(report["did_change_ms"]) == {"1 KB", "100 KB", "1 MB"}
    assert report["inline_completion_ms"]["p50"] <= report["inline_completion_ms"]["p99"]
