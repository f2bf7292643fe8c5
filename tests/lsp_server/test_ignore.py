"""Patterns as git reads them; compared with git itself where it is there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from remask.lsp_server.ignore import read_rules, verdict


@pytest.mark.parametrize(
    ("pattern", "fits", "not_fits"),
    [
        ("*.log", ["a.log", "x/y/a.log"], ["a.logs", "a.log/x"]),
        ("/a", ["a"], ["x/a"]),
        ("a/b", ["a/b"], ["x/a/b"]),
        ("**/b", ["b", "a/b", "x/a/b"], ["ab"]),
        ("a/**", ["a/x", "a/x/y"], ["a", "b/a/x"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("[ab]x", ["ax", "bx"], ["cx"]),
        ("[!ab]x", ["cx"], ["ax"]),
        ("[^a]x", ["cx"], ["ax"]),
        ("[a-c]x", ["bx"], ["dx"]),
        ("\\#a", ["#a"], ["a"]),
        ("a b ", ["a b"], ["a"]),
        ("a\\ ", ["a "], ["a"]),
        ("*", ["a", "a/b"], []),
        ("[", [], ["[", "a"]),
        ("[a", [], ["a"]),
        ("a\\", [], ["a", "a\\"]),
        ("x" * 2_000, [], ["x" * 2_000]),
        ("[z-a]", [], ["z"]),
        ("[[]x", ["[x"], ["x"]),
        ("a[[:digit:]]", ["a0", "a9"], ["a", "ax", "a:", "a[:digit:]"]),
        ("[![:space:]x]y", ["ay"], [" y", "xy"]),
        ("[[:upper:][:digit:]_]", ["A", "1", "_"], ["a"]),
        ("[[:punct:]]", ["-", "[", "`"], ["a", "/"]),
        ("[[:nonsense:]]", [], ["n", ":"]),
        ("[[:digit:", [], ["1"]),
        ("[]a]x", ["]x", "ax"], ["x"]),
        ("[\\]a]x", ["]x", "ax"], ["\\x"]),
        ("[+--]x", ["+x", "-x", ",x"], ["*x"]),
        ("[a-]x", ["ax", "-x"], ["bx"]),
        ("[a&&b~~c||]x", ["&x", "~x", "|x"], ["dx"]),
    ],
)
def test_a_pattern(pattern: str, fits: list[str], not_fits: list[str]) -> None:
    rules = read_rules([pattern])
    assert [path for path in fits if not verdict(rules, path, False)] == []
    assert [path for path in not_fits if verdict(rules, path, False)] == []


def test_the_last_pattern_decides_and_folders_are_told_from_files() -> None:
    rules = read_rules(["# no rule", "", "*.py", "!keep.py", "build/"])
    assert verdict(rules, "a.py", False) is True
    assert verdict(rules, "keep.py", False) is False
    assert verdict(rules, "a.txt", False) is None
    assert verdict(rules, "build", True) is True
    assert verdict(rules, "build", False) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_it_is_what_git_says(tmp_path: Path) -> None:
    patterns = ["*.log", "/top", "a/b", "**/deep", "x/**", "a/**/z", "!a/q/z", "[!a]1", "d?e", "\\!bang", "s*/t", "w/"]
    patterns += ["n[[:digit:]]", "[[:upper:]]", "[!a-y[:digit:]_.!]", "v[z-a]", "v[z-ay]", "u[\\]-^]", "l[^[:alpha:]]"]
    names = ["f.log", "top", "b", "deep", "x", "z", "q", "b1", "a1", "doe", "!bang", "st", "t", "w", "a"]
    names += ["n1", "nn", "Q", "va", "vy", "u]", "u^", "u\\", "l1", "la"]
    paths = [*names, *(f"{one}/{two}" for one in names for two in names)]
    (tmp_path / ".gitignore").write_text("\n".join(patterns) + "\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    asked = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin"],
        input="\n".join(paths),
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split("\n")
    theirs = {path.strip('"').replace("\\\\", "\\") for path in asked if path}
    rules = read_rules(patterns)

    def is_out(path: str) -> bool:
        parts = path.split("/")
        whole = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        return any(verdict(rules, one, one != path) for one in whole)

    assert {path for path in paths if is_out(path)} == theirs


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 20 + "*b", "a" * 200),
        ("?*" * 20 + "Q", "a" * 200),
        ("[a-z]*" * 20 + "Q", "a" * 200),
        ("**/" * 30 + "z", "a/" * 100 + "a"),
        ("**/a/" * 20 + "z", "a/" * 100 + "a"),
    ],
)
def test_no_pattern_holds_the_server_up(pattern: str, path: str) -> None:
    assert verdict(read_rules([pattern]), path, False) is None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*ab*abc", "xababc"),
        ("*a?*c", "baxc"),
        ("**/a/*/b/**/c", "a/a/x/b/c"),
        ("a*b*/**/c", "abb/c"),
        ("*a*/**", "ba/c"),
        ("***/a", "a"),
    ],
)
def test_several_wild_pieces_fit_wherever_they_can(pattern: str, path: str) -> None:
    assert verdict(read_rules([pattern]), path, False)
