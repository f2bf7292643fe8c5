"""The one home of offset units. Knows text only: no documents, no LSP types.

Three units count the same text: LSP clients speak one of them (by default UTF-16), Python strings count code points
(UTF-32), tree-sitter counts UTF-8 bytes. Inside Remask all is code points; it is converted here and nowhere else.
A lone surrogate counts as one code point, one UTF-16 unit and three bytes.
"""

from __future__ import annotations

from enum import StrEnum


class Unit(StrEnum):
    """What an offset counts; the values are LSP's names of position encodings."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


def size(text: str, unit: Unit) -> int:
    """The length of `text` in `unit`."""
    if unit is Unit.UTF32 or text.isascii():
        return len(text)
    if unit is Unit.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def from_index(text: str, index: int, unit: Unit) -> int:
    """The offset in `unit` of the code point `index`; an index outside `text` is clamped to its ends."""
    return size(text[: max(index, 0)], unit)


def to_index(text: str, offset: int, unit: Unit) -> int:
    """The code point at `offset` in `unit`.

    An offset outside `text` is clamped to its ends, one inside a character to that character's start.
    """
    if offset <= 0:
        return 0
    if unit is Unit.UTF32 or text.isascii():
        return min(offset, len(text))
    # No character takes less than one unit, so this much of the text is enough.
    head = text[:offset]
    return _utf8_index(head, offset) if unit is Unit.UTF8 else _utf16_index(head, offset)


def _utf8_index(text: str, offset: int) -> int:
    data = text.encode("utf-8", "surrogatepass")
    if offset >= len(data):
        return len(text)
    while data[offset] & 0xC0 == 0x80:  # a continuation byte
        offset -= 1
    return len(data[:offset].decode("utf-8", "surrogatepass"))


def _utf16_index(text: str, offset: int) -> int:
    data = text.encode("utf-16-be", "surrogatepass")
    if 2 * offset >= len(data):
        return len(text)
    if _is_high(data, offset - 1) and _is_low(data, offset):
        offset -= 1
    return len(data[: 2 * offset].decode("utf-16-be", "surrogatepass"))


def _is_high(data: bytes, unit: int) -> bool:
    return data[2 * unit] & 0xFC == 0xD8


def _is_low(data: bytes, unit: int) -> bool:
    return data[2 * unit] & 0xFC == 0xDC


def joined(text: str) -> str:
    """`text` with each pair of lone surrogates made into the character it stands for.

    Two edits may bring the halves of a pair one after the other; every document is kept joined.
    """
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def has_surrogates(text: str) -> bool:
    """Whether `text` holds a lone surrogate, which UTF-8 cannot carry."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
