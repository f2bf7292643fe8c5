"""A user's own repository: what git does not ignore, in the languages of the grammars, without secrets."""

import shutil
import subprocess

import pytest

from remask.contract.errors import InputError
from remask.engine.training.corpus.repository import read_repository

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
CODE = "def f():\n    return 1\n"
KEY = "AKIA" + "ABCDEFGHIJKLMNOP"

KEPT = {
    "a.py": CODE,
    "src/lib.rs": "fn main() {}\n",
    "web/app.ts": "let a = 1;\n",
    "C.H": "int f(void);\n",
    "größe.py": CODE,
}
LEFT = {
    ".env.py": CODE,
    ".hidden/a.py": CODE,
    "secrets.py": "PASSWORD = 'x'\n",
    "id_rsa.py": CODE,
    "keys.py": f"key = '{KEY}'\n",
    "pem.py": "text = '''-----BEGIN RSA PRIVATE KEY-----'''\n",
    "node_modules/a.js": "let a = 1;\n",
    "notes.txt": "words\n",
}
IGNORED = {"build.py": CODE, "generated/a.py": CODE, "private.py": CODE, "tracked_but_private.py": CODE}


def fill(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "project"
    fill(root, KEPT | LEFT)
    (root / "link.py").symlink_to(root / "a.py")
    return root


@needs_git
def test_what_git_tracks_or_could_track(folder):
    fill(folder, IGNORED)
    (folder / ".gitignore").write_text("build.py\ngenerated/\n")
    (folder / ".remaskignore").write_text("*private.py\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "add", "a.py", "tracked_but_private.py"], check=True)
    assert {name: data.decode() for name, data in read_repository(folder)} == KEPT


def test_a_folder_without_git(folder):
    assert {name: data.decode() for name, data in read_repository(folder)} == KEPT


def test_files_come_in_the_order_of_their_paths(folder):
    names = [name for name, _ in read_repository(folder)]
    assert names == sorted(names)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        list(read_repository(tmp_path / "none"))
