"""Where in the code a hole lies: how far a completion should reach. Knows the text and the grammar, never the model."""

from __future__ import annotations

from remask.contract.messages import Extent
from remask.grammars.blocks import opens_block
from remask.grammars.language import Grammar
from remask.grammars.lexis import CodeLine, Lexis, scan, scan_prefix, width
from remask.grammars.placeholders import is_placeholder

LOOKAHEAD = 4_000
"""Code points of the suffix that are looked at to see whether a block has content already."""

_CLOSERS = ")]}>,;:"


def completion_extent(grammar: Grammar, prefix: str, suffix: str) -> Extent:
    """What `Extent.AUTO` means here: BLOCK where a block was opened and holds nothing yet, else LINE.

    LINE wherever code other than closers follows on the line. Needs no parse, and never raises.
    """
    rest, _, below = suffix.partition("\n")
    if rest.strip().strip(_CLOSERS):
        return Extent.LINE
    lexis = scan_prefix(grammar, prefix)
    header = None if lexis.inside else _open_header(grammar, prefix, lexis)
    if header is None:
        return Extent.LINE
    if not grammar.text.offside and rest.strip():
        return Extent.BLOCK if rest.lstrip().startswith("}") else Extent.LINE
    return Extent.BLOCK if _is_empty(grammar, header, below[:LOOKAHEAD]) else Extent.LINE


def _open_header(grammar: Grammar, prefix: str, lexis: Lexis) -> CodeLine | None:
    """The line that opens the block at the cursor, if nothing but a docstring stands between."""
    if lexis.stack and (grammar.text.offside or lexis.stack[-1][0] != "{"):
        return None
    lines = list(lexis.lines[-4:])
    head = prefix[lexis.anchor :]
    documented = False
    while lines and lines[-1].bare and not head.strip():
        documented = True
        lines.pop()
    if not lines or not opens_block(grammar, prefix, lines[-1]):
        return None
    if head.strip() and lines[-1].start != lexis.anchor:
        return None
    return None if documented and width(head) <= lines[-1].indent else lines[-1]


def _is_empty(grammar: Grammar, header: CodeLine, below: str) -> bool:
    lines = scan(grammar, below).lines[:2]
    while lines and is_placeholder(grammar, below[lines[0].start : lines[0].tail]):
        lines = lines[1:]
    return not lines or lines[0].indent <= header.indent
