"""Which files are worth learning from: judged one by one, by their text alone."""

from __future__ import annotations

import ast
import re
import warnings

MIN_CHARACTERS = 300
MAX_CHARACTERS = 300_000
MAX_LINE = 1_000
MAX_MEAN_LINE = 90
MAX_DATA_SHARE = 0.5
HEADER = 800  # characters in which a file says that it was generated

_GENERATED = re.compile(
    r"\bdo not edit\b|\bauto-?generated\b"
    r"|^\W*(?:this (?:file|module) (?:was|is) )?(?:automatically )?generated (?:by|from|with)\b",
    re.I | re.M,
)
_DATA_LINE = re.compile(r"""\s*(?:[-+]?[\d.]|[bru]?['"]|[\[\](){},]+\s*(?:[\d.'"]|$))""")


def decode(data: bytes) -> str | None:
    """UTF-8 text with plain line ends; None for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def refusal(text: str) -> str | None:
    """Why a file is left out, in a word or two; None where it is kept.

    Whether it parses is asked apart, of the files that pass this: that is slow.
    """
    if not MIN_CHARACTERS <= len(text) <= MAX_CHARACTERS:
        return "length"
    lines = [line for line in text.split("\n") if line.strip()]
    if max(map(len, lines)) > MAX_LINE or sum(map(len, lines)) / len(lines) > MAX_MEAN_LINE:
        return "long lines"
    if _GENERATED.search(text[:HEADER]):
        return "generated"
    if _data_share(lines) > MAX_DATA_SHARE:
        return "data table"
    return None


def parses(text: str, language: str) -> bool:
    """Whether the whole file is well formed: by Python's own parser, by tree-sitter for the other languages."""
    if language == "python":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return True
    from remask.grammars.language import grammar_for_language

    grammar = grammar_for_language(language)
    return grammar is not None and not grammar.parse(text.encode("utf-8", "replace")).root_node.has_error


def _data_share(lines: list[str]) -> float:
    """The share of lines that are items of a literal. Docstrings are text and count as code."""
    return sum(1 for line in lines if _DATA_LINE.match(line) and '"""' not in line) / len(lines)
