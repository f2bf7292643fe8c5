"""Patterns as git reads them; compared with git itself where it is there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from remask.lsp_server.ignore import MAX_RULES, read_rules, verdict


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
        ("a\\\\ ", ["a\\"], ["a\\ "]),
        ("a \r\n", ["a"], ["a "]),
        ("//a", [], ["a", "x/a"]),
        ("a//", [], ["a", "a/x"]),
        ("//**a**//", [], ["a", "xax", "x/a"]),
        ("//***", [], ["a", "x/a"]),
        ("b**/****/x", ["b/x", "ba/x", "bx", "b/c/d/x"], ["ab/x"]),
        ("x/a**/b", ["x/ab", "x/a/b", "x/ac/d/b"], ["x/b", "y/x/ab"]),
        ("?**/b", ["a/b", "ac/b"], ["ab", "a/c/b"]),
        ("/**\\/b", ["a/b", "a/c/b"], ["b"]),
        ("??", ["é", "ab"], ["a", "éé"]),
        ("é[à-ü]", [], ["é", "éa"]),
        ("*", ["a", "a/b"], []),
        ("[", [], ["[", "a"]),
        ("[a", [], ["a"]),
        ("a\\", [], ["a", "a\\"]),
        ("x" * 2_000, [], ["x" * 2_000]),
        ("[z-a]", ["z"], ["a", "y"]),
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


PIECES = ["a", "b", "ab", "*", "*", "**", "***", "/", "/", "?", "[ab]", "[!a]", "[a-c]", "[]b]", "[[:alpha:]]"]
PIECES += [
    "[",
    "]",
    "-",
    "!",
    "#",
    " ",
    "\\",
    "\\ ",
    "\\/",
    ".",
    "é",
    "[é]",
    "[^-]",
    "[b-",
    "[[:nonsense:]]",
    "[:",
    "!",
]
NAMES = ["a", "b", "c", "ab", "ba", "aab", "a b", "a ", "é", "#", "!", "a.b", "[", "-", "\\", "ab.", "]"]
PATHS = [*NAMES, *(f"{one}/{two}" for one in NAMES for two in ["a", "b", "ab", "é"])]
PATHS += ["a/a/b", "a/b/ab", "b/c/a", "ab/c/b/a"]
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)


def ignored_by_git(folder: Path, files: list[list[str]]) -> list[set[str]]:
    """For each list of patterns, as the ignore file of a folder of its own, which of PATHS git takes out."""
    for number, patterns in enumerate(files):
        (folder / str(number)).mkdir(exist_ok=True)
        (folder / str(number) / ".gitignore").write_bytes("".join(f"{one}\n" for one in patterns).encode())
    asked = "".join(f"{number}/{path}\0" for number in range(len(files)) for path in PATHS)
    command = ["git", "-C", str(folder), "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z"]
    said = subprocess.run(command, input=asked.encode(), capture_output=True, check=False).stdout.decode()
    found: list[set[str]] = [set() for _ in files]
    for number, _, path in (one.partition("/") for one in said.split("\0") if one):
        found[int(number)].add(path)
    return found


def ignored_by_us(patterns: list[str]) -> set[str]:
    rules = read_rules(patterns)

    def is_out(path: str) -> bool:
        parts = path.split("/")
        whole = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        return any(verdict(rules, one, one != path) for one in whole)

    return {path for path in PATHS if is_out(path)}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(st.lists(PATTERNS, min_size=1, max_size=3), min_size=25, max_size=25))
@example(
    files=[["//**a**//"], ["//***"], ["b**/****/"], ["a/", "!a"], ["*", "!b", "!*/"], ["a*b*/**/c"], ["x/**", "**"]]
)
def test_any_pattern_takes_out_what_git_says(tmp_path: Path, files: list[list[str]]) -> None:
    if not (tmp_path / ".git").exists():
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    theirs = ignored_by_git(tmp_path, files)
    for patterns, said in zip(files, theirs, strict=True):
        assert ignored_by_us(patterns) == said, patterns


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 20 + "*b", "a" * 200),
        ("?*" * 20 + "Q", "a" * 200),
        ("[a-z]*" * 20 + "Q", "a" * 200),
        ("**/" * 30 + "z", "a/" * 100 + "a"),
        ("**/a/" * 20 + "z", "a/" * 100 + "a"),
        ("**\\/a*" * 20 + "z", "a/" * 100 + "a"),
        ("a**" * 100 + "z", "a" * 500),
        ("/" * 500 + "z", "/" * 500 + "a"),
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


def test_a_file_of_many_plain_patterns_is_read_in_full() -> None:
    rules = read_rules(f"file{number}" for number in range(MAX_RULES))
    assert verdict(rules, f"a/file{MAX_RULES - 1}", False)
    assert verdict(rules, "a/other", False) is None


@pytest.mark.parametrize("pattern", ["file{}", "*{}?"])
def test_more_patterns_than_anybody_asks_take_everything_out(pattern: str) -> None:
    rules = read_rules(pattern.format(number) for number in range(500_000))
    assert len(rules) <= MAX_RULES + 1
    assert verdict(rules, "a/other", False)
