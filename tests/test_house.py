"""The arrows between the folders, and what stays cheap to import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "contract": set(),
    "grammars": {"contract"},
    "kernels": set(),
    "engine": {"contract", "grammars", "kernels"},
    "lsp_server": {"contract", "grammars"},
    "cli": {"contract", "grammars", "engine", "lsp_server"},
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        yield from (n.split(".")[1] for n in names if n.startswith("remask."))


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_arrows(folder):
    allowed = MAY_IMPORT[folder] | {folder}
    wrong = {
        (str(path.relative_to(ROOT)), part)
        for path in (ROOT / folder).rglob("*.py")
        for part in imported(path)
        if part not in allowed
    }
    assert not wrong


@pytest.mark.parametrize("module", ["remask.lsp_server.server", "remask.cli.main", "remask.engine", "remask.grammars"])
def test_no_torch_outside_the_engine_process(module):
    program = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_no_process_of_ours_has_the_current_folder_on_its_module_path():
    """`python -m` puts it there unless told not to (`-P`): then `json.py` of any project that is opened would run."""
    wrong = []
    for path in ROOT.glob("*/**/*.py"):
        if path.relative_to(ROOT).parts[0] in MAY_IMPORT:
            for node in ast.walk(ast.parse(path.read_text())):
                words = [one.value for one in getattr(node, "elts", ()) if isinstance(one, ast.Constant)]
                if "-m" in words and "-P" not in words:
                    wrong.append((path, node.lineno))
    assert not wrong


def test_nothing_pickles():
    for path in ROOT.glob("*/**/*.py"):
        if path.relative_to(ROOT).parts[0] in MAY_IMPORT:
            assert "pickle" not in set(top_level_imports(path)), path


def top_level_imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name.split(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]
