"""Lines and positions the slow and plain way, for comparison with the server's."""

from __future__ import annotations

import re

from remask.lsp_server.positions import Unit

_SIZES = {Unit.UTF8: lambda c: len(c.encode("utf-8", "surrogatepass")), Unit.UTF16: lambda c: 1 + (ord(c) > 0xFFFF)}


def lines_of(text: str) -> list[str]:
    """The lines with their ends, as the protocol splits them."""
    parts = re.split(r"(\r\n|\n|\r)", text)
    return ["".join(parts[at : at + 2]) for at in range(0, len(parts), 2)]


def place_of(text: str, offset: int, unit: Unit) -> tuple[int, int]:
    """Line and column of a code point; one inside a CRLF counts as the end of its line."""
    lines = lines_of(text[:offset])
    last = lines[-1]
    if text[offset - 1 : offset + 1] == "\r\n":
        lines, last = lines[:-1], lines[-2].rstrip("\r")
    size = _SIZES.get(unit, lambda _: 1)
    return len(lines) - 1, sum(size(character) for character in last)
