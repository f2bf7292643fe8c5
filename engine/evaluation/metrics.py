"""How close a completion comes to the truth: small pure functions of two texts. Knows no model and no data set."""

from __future__ import annotations

import ast
import math
import re
import warnings

from remask.grammars import grammar_for_language
from remask.grammars.source import encode

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


def exact_match(predicted: str, truth: str) -> bool:
    """Equal but for white space at the end."""
    return predicted.rstrip() == truth.rstrip()


def levenshtein(a: str, b: str) -> int:
    """Fewest insertions, deletions and substitutions of characters that turn `a` into `b`.

    Source: Myers 1999, with a whole column of the table in one integer, in the form of Hyyro 2003.
    """
    if not a or not b:
        return max(len(a), len(b))
    full, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    places = _places(a)
    up, down, distance = full, 0, len(a)  # where the column's next cell is one larger, and one smaller
    for character in b:
        match = places.get(character, 0)
        diagonal = (((match & up) + up) ^ up) | match | down
        right = down | ~(diagonal | up)
        left = diagonal & up
        distance += bool(right & last) - bool(left & last)
        right = (right << 1) | 1
        up = ((left << 1) | ~(diagonal | right)) & full
        down = diagonal & right & full
    return distance


def edit_similarity(predicted: str, truth: str) -> float:
    """1 - Levenshtein distance / length of the longer text, white space at the end left out; 1 for two empty ones."""
    a, b = predicted.rstrip(), truth.rstrip()
    longest = max(len(a), len(b))
    return 1.0 if longest == 0 else 1.0 - levenshtein(a, b) / longest


def kept_characters(predicted: str, truth: str) -> int:
    """Characters of `predicted` that would survive if its reader turned it into `truth`.

    Those of the common subsequence of words, gaps and signs that has the most characters: by single characters, even
    unrelated texts share much. Idea: the kept rate of Zed's edit predictions; the definition is our own.
    """
    a, b = _PIECE.findall(predicted.rstrip()), _PIECE.findall(truth.rstrip())
    row = [0] * (len(b) + 1)
    for piece in a:
        before, row = row, [0]
        for i, other in enumerate(b):
            taken = before[i] + len(piece) if piece == other else 0
            row.append(max(taken, before[i + 1], row[i]))
    return row[-1]


def parses(language: str, text: str) -> bool:
    """Whether a whole file is free of syntax errors: by the compiler's parser for Python, by tree-sitter otherwise.

    A language without a grammar parses nothing. Raises GrammarError where its parser cannot be loaded.
    """
    if language == "python":
        try:
            with warnings.catch_warnings(action="ignore"):  # an odd escape in a string is no error
                ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return True
    grammar = grammar_for_language(language)
    return grammar is not None and not grammar.parse(encode(text)).root_node.has_error


def percentile(values: list[float], share: float) -> float:
    """The smallest of `values` that is no less than `share` of them (nearest rank); 0 for none."""
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def interval(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a rate seen as `hits` of `count` (Wilson 1927): what sampling alone leaves open."""
    if count == 0:
        return 0.0, 1.0
    z, rate = 1.96, hits / count
    middle = rate + z * z / (2 * count)
    width = z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def _places(text: str) -> dict[str, int]:
    """For each character of `text` the bits of its places."""
    places: dict[str, int] = {}
    for i, character in enumerate(text):
        places[character] = places.get(character, 0) | 1 << i
    return places
