"""The one place where texts become the UTF-8 bytes that tree-sitter counts in, and back. Knows no language."""

from __future__ import annotations


def encode(text: str) -> bytes:
    """`text` as UTF-8; a lone surrogate becomes "?", so that the number of code points stays the same."""
    return text.encode("utf-8", "replace")


def code_points(source: bytes, offset: int) -> int:
    """A byte offset into `source` as a code point offset; inside a character it counts as its start."""
    return len(source[:offset].decode("utf-8", "ignore"))


def byte_count(text: str) -> int:
    """The bytes that `encode` makes of `text`: of a text's first characters, the byte offset that they end at."""
    return len(encode(text))
