"""The VS Code extension's own code, run by Node with stand-ins for VS Code and its language client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode" / "extension.js"
DRIVE = """
const Module = require("module");
const started = [];
const item = { show() {} };
const vscode = {
  workspace: {
    getConfiguration: () => ({ get: (name) => (name === "command" ? "~/bin/remask" : undefined) }),
    onDidChangeConfiguration: () => ({}),
  },
  window: { createStatusBarItem: () => item },
  commands: { registerCommand: () => ({}) },
  StatusBarAlignment: {},
};
class LanguageClient {
  constructor(id, name, server) { started.push(server); }
  getFeature() {}
  onNotification() {}
  async start() {}
}
const load = Module._load;
Module._load = (name, ...rest) =>
  name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
require(process.argv[1]).activate({ subscriptions: [] }).then(() => console.log(JSON.stringify(started)));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_server_is_not_started_in_the_folder_that_is_open(tmp_path: Path) -> None:
    home, opened = tmp_path / "home", tmp_path / "opened"
    home.mkdir()
    opened.mkdir()
    done = subprocess.run(
        ["node", "-e", DRIVE, str(EXTENSION)],
        cwd=opened,
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (server,) = json.loads(done.stdout)
    assert server == {"command": str(home / "bin/remask"), "args": ["lsp"], "options": {"cwd": str(home)}}
