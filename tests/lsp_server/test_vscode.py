"""Ghost text in a real VS Code, as code-server in a headless browser. Skipped where one of the parts is missing.

REMASK_TEST_CODE_SERVER is the command of code-server, REMASK_TEST_PLAYWRIGHT a folder with playwright-core in its
node_modules, REMASK_TEST_CHROMIUM the browser if it is not on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from remask.lsp_server.statistics import read_statistics

ROOT = Path(__file__).parents[2]
CODE_SERVER = os.environ.get("REMASK_TEST_CODE_SERVER") or shutil.which("code-server")
PLAYWRIGHT = os.environ.get("REMASK_TEST_PLAYWRIGHT")
CHROMIUM = os.environ.get("REMASK_TEST_CHROMIUM") or shutil.which("chromium")
PATIENCE_S = 90.0
SETTINGS = {
    "editor.inlineSuggest.enabled": True,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "files.autoSave": "off",
    "files.hotExit": "off",
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
}

pytestmark = [
    pytest.mark.skipif(
        not (CODE_SERVER and PLAYWRIGHT and CHROMIUM and shutil.which("npm")),
        reason="needs code-server, Chromium, npm and playwright-core (REMASK_TEST_CODE_SERVER, REMASK_TEST_PLAYWRIGHT)",
    ),
    pytest.mark.timeout(300),
]


def build_extension(folder: Path) -> Path:
    """The extension as a package that VS Code installs. Skips where npm gets nothing."""
    source = folder / "extension"
    shutil.copytree(ROOT / "editors" / "vscode", source, ignore=shutil.ignore_patterns("node_modules"))
    for command in (
        ["npm", "install", "--silent", "--no-package-lock", "--no-audit", "--no-fund"],
        [
            "npx",
            "--yes",
            "@vscode/vsce",
            "package",
            "--allow-missing-repository",
            "--skip-license",
            "-o",
            "remask.vsix",
        ],
    ):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"the extension cannot be built: {done.stderr.strip()[-200:]}")
    return source / "remask.vsix"


@pytest.fixture
def vscode(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a VS Code that has the extension and two files open-able, and the first of them."""
    assert CODE_SERVER is not None
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("# é 你好 😀\r\n", newline="")
    (work / "b.py").write_text("def wait(a, b):\n    pass\n")
    server = tmp_path / "remask"
    fake = Path(__file__).with_name("fake_server.py")
    server.write_text(f"#!/bin/sh\nexec {sys.executable} {fake} 'first + second'\n")
    server.chmod(0o755)
    user = tmp_path / "user" / "User"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(json.dumps({**SETTINGS, "remask.command": str(server)}))
    home = {**os.environ, "HOME": str(tmp_path)}
    folders = ["--user-data-dir", str(tmp_path / "user"), "--extensions-dir", str(tmp_path / "extensions")]
    vsix = build_extension(tmp_path)
    subprocess.run([CODE_SERVER, *folders, "--install-extension", str(vsix)], env=home, check=True, capture_output=True)
    port = free_port()
    options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry", "--disable-update-check"]
    process = subprocess.Popen(
        [CODE_SERVER, *folders, *options, str(work)], env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}/?folder={work}"
    until_it_answers(url, process)
    yield url, work / "a.py"
    tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for one in tree:
        if one.is_running():
            one.terminate()
    _, alive = psutil.wait_procs(tree, 10)
    for one in alive:
        one.kill()
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)  # another process decides when it listens
    pytest.fail("code-server did not start")


def test_ghost_text_and_drafts_are_shown(vscode: tuple[str, Path]) -> None:
    url, file = vscode
    assert PLAYWRIGHT is not None
    assert CHROMIUM is not None
    drive = Path(__file__).with_name("vscode_drive.mjs")
    done = subprocess.run(
        ["node", str(drive), PLAYWRIGHT, url, file.name, "b.py"],
        env={**os.environ, "REMASK_TEST_CHROMIUM": CHROMIUM},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert "error" not in facts, facts
    assert facts["ghost"].startswith("first + second"[:5])
    assert "Remask" in facts["status"]
    assert file.read_bytes().decode() == "# é 你好 😀\r\nx = first + second"
    assert "first" in facts["draft"]
    assert (file.parent / "b.py").read_text() == "def wait(a, b):\n    pass\n"
    (day,) = read_statistics().values()
    assert day["accepted"] == 1
    assert day["shown"], "code-server lets every extension know"
    assert day["partly"]
