"""The last word on ghost text: whether trimming has broken what the engine had judged.

The order is: the engine writes; its gate judges the draft, there, because it can cut the draft or try another one;
the server trims what the editor has already or would draw badly (postprocess), which only it knows; and what trimming
has changed is judged here, once, after the last change. Only texts that trimming changed are parsed again, so that the
usual one costs nothing. Leaving out what was typed meanwhile (ghost.fitted) changes no document, and needs no check.

Function bodies go the same way; their last word is fillcheck.
"""

from __future__ import annotations

from remask.grammars import Grammar, GrammarError
from remask.grammars.bounded import parse_bounded
from remask.grammars.layout import layout_errors
from remask.grammars.source import byte_count, encode
from remask.lsp_server.context import Place, known_grammar

MAX_PARSED = 300_000
"""Code points of a document that is parsed once more."""


def trimming_broke(place: Place, written: str, left: str) -> bool:
    """Whether the document parses with the text as it was written and not with what trimming has left of it."""
    grammar = known_grammar(place.document.language)
    if grammar is None or len(place.prefix) + len(place.suffix) > MAX_PARSED:
        return False
    return _parses(grammar, place, written) and not _parses(grammar, place, left)


def _parses(grammar: Grammar, place: Place, text: str) -> bool:
    source = encode(place.prefix + text + place.suffix)
    try:
        root = parse_bounded(grammar, source).root_node
    except GrammarError:
        return True
    start = byte_count(place.prefix)
    layout = grammar.gate.layout and any(layout_errors(root, source, start, start + byte_count(text)))
    return not (root.has_error or layout)
