"""Patterns as in .gitignore. Pure: knows texts and relative paths, never a disk.

Within one file of patterns the last one that fits decides; `!` takes a file back in, unless a folder above it is out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

MAX_PATTERN = 1_000  # characters; a longer one names no file
_STAR = "[^/]*"
_FOLDERS = "(?:[^/]+/)*"
_MORE_STARS = re.compile(r"(?<![^/])\*{3,}(?![^/])")  # as a folder's or a file's whole name
_CLASS = re.compile(r"\[:(\w*):\]")
_CLASSES = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""What git takes the classes for: characters of ASCII."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern: what it fits, and whether it takes files out or back in."""

    expression: re.Pattern[str]
    only_folders: bool
    takes_in: bool


def read_rules(lines: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of a file of patterns; lines that say nothing are left out."""
    rules = (_read_rule(line) for line in lines)
    return tuple(rule for rule in rules if rule is not None)


def verdict(rules: tuple[Rule, ...], path: str, is_folder: bool) -> bool | None:
    """Whether the rules take `path` (with `/`, relative to their folder) out; None if none of them fits."""
    for rule in reversed(rules):
        if (is_folder or not rule.only_folders) and rule.expression.fullmatch(path):
            return not rule.takes_in
    return None


def _read_rule(line: str) -> Rule | None:
    pattern = line.rstrip("\r\n")
    while pattern.endswith(" ") and not pattern.endswith("\\ "):
        pattern = pattern[:-1]
    if not pattern or pattern.startswith("#") or len(pattern) > MAX_PATTERN:
        return None
    takes_in = pattern.startswith("!")
    pattern = pattern[1:] if takes_in else pattern
    only_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/") if only_folders else pattern
    if not pattern:
        return None
    anchored = "/" in pattern
    expression = _translate(_MORE_STARS.sub("**", pattern.lstrip("/")))
    return (
        None
        if expression is None
        else Rule(re.compile(expression if anchored else f"(?:.*/)?{expression}", re.DOTALL), only_folders, takes_in)
    )


@lru_cache(maxsize=4_096)
def _translate(pattern: str) -> str | None:
    """The pattern as a regular expression; None where its brackets make no sense."""
    out: list[str] = []
    part: list[str] = []  # of a path, between two slashes
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            piece, at = _FOLDERS, at + 3
        elif pattern.startswith("/**", at) and at + 3 == len(pattern):
            piece, at = "/.+", at + 3
        else:
            one, at = _translate_one(pattern, at)
            if one is None:
                return None
            piece = one
        if piece in ("/", _FOLDERS):
            out += [_first_fits(part, _STAR), piece]
            part = []
        else:
            part.append(piece)
    return _first_fits([*out, _first_fits(part, _STAR)], _FOLDERS)


def _first_fits(pieces: list[str], wild: str) -> str:
    """The pieces as one expression in which all wild ones but the last end where what follows them fits first.

    A later end only leaves less for the rest, so none is tried: with all of them, a few stars take for ever. Python's
    `fnmatch.translate` does the same.
    """
    places = [at for at, piece in enumerate(pieces) if piece == wild]
    out = pieces[: places[0]] if places else pieces[:]
    for here, there in pairwise(places):
        out.append(f"(?>{wild}?{''.join(pieces[here + 1 : there])})")
    return "".join(out + pieces[places[-1] :] if places else out)


def _translate_one(pattern: str, at: int) -> tuple[str | None, int]:
    character = pattern[at]
    if character == "*":
        while at < len(pattern) and pattern[at] == "*":
            at += 1
        return _STAR, at
    if character == "?":
        return "[^/]", at + 1
    if character == "\\":
        return (re.escape(pattern[at + 1]), at + 2) if at + 1 < len(pattern) else (None, at + 1)
    if character == "[":
        return _translate_set(pattern, at)
    return re.escape(character), at + 1


def _translate_set(pattern: str, at: int) -> tuple[str | None, int]:
    """A set of characters: single and escaped ones, ranges, and classes such as `[:digit:]`."""
    negated = pattern[at + 1 : at + 2] in ("!", "^")
    start = end = at + 1 + negated
    inside: list[str] = []
    while end < len(pattern) and (pattern[end] != "]" or end == start):
        named = _CLASS.match(pattern, end)
        if named is not None:
            if named[1] not in _CLASSES:
                return None, end
            inside.append(_CLASSES[named[1]])
            end = named.end()
            continue
        low, end = _one_of_set(pattern, end)
        high = low
        if pattern[end : end + 1] == "-" and pattern[end + 1 : end + 2] not in ("]", ""):
            high, end = _one_of_set(pattern, end + 1)
        if low <= high:  # the other way round it holds nothing
            inside.append(f"{re.escape(low)}-{re.escape(high)}")
    if end >= len(pattern):
        return None, end
    characters = "".join(inside)
    if not characters:
        return ("[^/]" if negated else None), end + 1
    return f"(?!/)[{'^' if negated else ''}{characters}]", end + 1


def _one_of_set(pattern: str, at: int) -> tuple[str, int]:
    """A character of a set, which a backslash may stand before, and where the next one begins."""
    at += pattern[at] == "\\" and at + 1 < len(pattern)
    return pattern[at], at + 1
