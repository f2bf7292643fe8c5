"""Patterns as in .gitignore. Pure: knows texts and relative paths, never a disk.

Within one file of patterns the last one that fits decides; `!` takes a file back in, unless a folder above it is out.
Read as git's dir.c and wildmatch.c read them, their odd corners included (a pattern that keeps a slash at its end or a
second one at its start fits nothing; `**` right behind the plain text at the start of a pattern goes across folders).
Written here, though `pathspec` exists: its expressions try every end of every star, so that one line of forty
characters (`*a*a*a...*b`) in somebody's repository would hold the server up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

MAX_PATTERN = 1_000  # characters; a longer one names no file
MAX_RULES = 10_000  # of one file, of which MAX_WILD may have wildcards; more would hold typing up: then all is out
MAX_WILD = 2_000
_STAR = "[^/]*"
_FOLDERS = "(?:[^/]*/)*"
_PLAIN = re.compile(r"[^*?\[\\]*")
_STARS = re.compile(r"\*+")
_CLASS = re.compile(r"\[:([^\]]*):\]")
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
    """One pattern: what it fits, and whether it takes files out or back in. `anchored`: the whole path, else its name.

    `expression` is asked of a path's UTF-8 bytes, each as one character: so git counts. A text fits only itself.
    """

    expression: re.Pattern[str] | str
    anchored: bool
    only_folders: bool
    takes_in: bool

    def fits(self, text: str) -> bool:
        """Whether the expression fits all of a text."""
        if isinstance(self.expression, str):
            return self.expression == text
        return self.expression.fullmatch(text) is not None


_ALL = Rule(re.compile(".*", re.DOTALL), anchored=True, only_folders=False, takes_in=False)


def read_rules(lines: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of a file of patterns; lines that say nothing are left out."""
    rules: list[Rule] = []
    wild = 0
    for line in lines:
        rule = _read_rule(line)
        if rule is None:
            continue
        wild += not isinstance(rule.expression, str)
        if len(rules) >= MAX_RULES or wild > MAX_WILD:
            return (*rules, _ALL)
        rules.append(rule)
    return tuple(rules)


def verdict(rules: tuple[Rule, ...], path: str, is_folder: bool) -> bool | None:
    """Whether the rules take `path` (with `/`, relative to their folder) out; None if none of them fits."""
    whole = _bytewise(path)
    name = whole.rpartition("/")[2]
    for rule in reversed(rules):
        if (is_folder or not rule.only_folders) and rule.fits(whole if rule.anchored else name):
            return not rule.takes_in
    return None


def _bytewise(text: str) -> str:
    """The UTF-8 bytes of a text, each as one character."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def _read_rule(line: str) -> Rule | None:
    pattern = _without_trailing_spaces(line.removesuffix("\n").removesuffix("\r"))
    if not pattern or pattern.startswith("#") or len(pattern) > MAX_PATTERN:
        return None
    takes_in = pattern.startswith("!")
    pattern = pattern[1:] if takes_in else pattern
    only_folders = pattern.endswith("/")
    pattern = pattern[:-1] if only_folders else pattern
    anchored = "/" in pattern
    pattern = _bytewise(pattern.removeprefix("/"))
    if pattern and _PLAIN.fullmatch(pattern):
        return Rule(pattern, anchored, only_folders, takes_in)
    expression = _translate(pattern)
    return None if expression is None else Rule(re.compile(expression, re.DOTALL), anchored, only_folders, takes_in)


def _without_trailing_spaces(line: str) -> str:
    """The line without the spaces at its end that no backslash stands before; backslashes go by pairs."""
    end = at = 0
    while at < len(line):
        is_pair = line[at] == "\\"
        is_space = line[at] == " "
        at += 2 if is_pair else 1
        end = end if is_space else at
    return line[:end]


@lru_cache(maxsize=4_096)
def _translate(pattern: str) -> str | None:
    """The pattern as a regular expression; None where it fits nothing."""
    plain = _PLAIN.match(pattern)
    assert plain is not None
    start = at = plain.end()
    out = [re.escape(plain.group())]
    part: list[str] = []  # of a path, between two slashes
    while at < len(pattern):
        piece, at = _translate_one(pattern, at, start)
        if not piece:
            return None
        for one in piece:
            if one in ("/", _FOLDERS):
                out += [_first_fits(part, _STAR), one]
                part = []
            else:
                part.append(one)
    return _first_fits([*out, _first_fits(part, _STAR)], _FOLDERS) if pattern else None


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


def _translate_one(pattern: str, at: int, start: int) -> tuple[list[str], int]:
    """The expressions for what stands at a place, and where the next begins; none where the pattern fits nothing.

    The pattern begins with plain text up to `start`.
    """
    character = pattern[at]
    if character == "*":
        return _translate_stars(pattern, at, start)
    if character == "?":
        return ["[^/]"], at + 1
    if character == "\\":
        return [re.escape(one) for one in pattern[at + 1 : at + 2]], at + 2
    if character == "[":
        return _translate_set(pattern, at)
    return [re.escape(character)], at + 1


def _translate_stars(pattern: str, at: int, start: int) -> tuple[list[str], int]:
    """Two stars or more that are all of a folder's name go across folders; others stay within a name."""
    stars = _STARS.match(pattern, at)
    assert stars is not None
    end = stars.end()
    if end - at == 1 or not (at == start or pattern[at - 1] == "/"):
        return [_STAR], end
    if end == len(pattern):
        return [".*"], end
    if pattern[end] == "/":
        return [_FOLDERS], end + 1
    if pattern.startswith("\\/", end):
        return [_STAR, "/", _FOLDERS], end + 2
    return [_STAR], end


def _translate_set(pattern: str, at: int) -> tuple[list[str], int]:
    """A set of characters: single and escaped ones, ranges, and classes such as `[:digit:]`."""
    negated = pattern[at + 1 : at + 2] in ("!", "^")
    first = at = at + 1 + negated
    inside: list[str] = []
    before = ""  # what a range may begin with
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        if pattern[at] == "-" and before and pattern[at + 1 : at + 2] not in ("]", ""):
            last, at = _one_of_set(pattern, at + 1)
            if before <= last:  # the other way round it holds nothing
                inside.append(f"{re.escape(before)}-{re.escape(last)}")
            before = ""
        elif named := _CLASS.match(pattern, at):
            if named[1] not in _CLASSES:
                return [], at
            inside.append(_CLASSES[named[1]])
            before, at = "", named.end()
        else:
            before, at = _one_of_set(pattern, at)
            inside.append(re.escape(before))
    if at >= len(pattern):
        return [], at
    return [f"(?!/)[{'^' if negated else ''}{''.join(inside)}]"], at + 1


def _one_of_set(pattern: str, at: int) -> tuple[str, int]:
    """A character of a set, which a backslash may stand before, and where the next one begins."""
    at += pattern[at] == "\\"
    return pattern[at : at + 1], at + 1
