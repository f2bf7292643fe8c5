"""Whether code that was written into a stub may be shown: the text parses, and the signature is untouched.

Knows text and trees. The engine's own gate has judged the code before; this is the last word, on the whole text.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from remask.grammars import Grammar
from remask.grammars.bounded import parse_bounded
from remask.grammars.functions import Function, functions_near
from remask.grammars.layout import layout_errors
from remask.grammars.source import code_points, encode
from remask.lsp_server.parsed import Stub
from remask.lsp_server.stubs import function_stub

if TYPE_CHECKING:
    from tree_sitter import Node

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed: editors show none of them


def objection(grammar: Grammar, text: str, stub: Stub, code: str) -> str:
    """What speaks against the code, in a few words; empty if it may be shown. Raises GrammarError."""
    if not code.strip() or _CONTROL.search(code):
        return "it holds a control character" if code.strip() else "nothing was written"
    new = stub.filled(text, code)
    source = encode(new)
    root = parse_bounded(grammar, source).root_node
    if root.has_error and not _is_broken(grammar, text):
        return "it does not parse"
    found = _function(grammar, root, source, stub.function[0])
    if found is None:
        return "the function is gone"
    function = found.node
    if new[stub.function[0] : code_points(source, found.body.start_byte)].rstrip() != _signature(text, stub):
        return "the signature is another"
    end = code_points(source, function.end_byte)
    rest = len(text) - max(stub.hole[1], stub.function[1])
    if not len(new[:end].rstrip()) <= len(new[: len(new) - rest].rstrip()) <= end + _slack(new, end):
        return "the code leaves the function"
    if function.has_error:
        return "it does not parse"
    if grammar.gate.layout and any(layout_errors(function, source)):
        return "its indentation does not fit"
    least = stub.filled(text, grammar.gate.neutral[0])
    if grammar.gate.compiler == "python" and not _compiles(new) and _compiled(least):
        return "Python does not take it"
    if stub.whole and function_stub(grammar, new, stub.function[0]) is not None:
        return "it is a placeholder again"
    return ""


def _signature(text: str, stub: Stub) -> str:
    return text[stub.function[0] : stub.body_start].rstrip()


def _slack(new: str, end: int) -> int:
    """White space and comments after the function's last node belong to it in some grammars and not in others."""
    line_end = new.find("\n", end)
    return (len(new) if line_end < 0 else line_end) - end


def _function(grammar: Grammar, root: Node, source: bytes, start: int) -> Function | None:
    at = len(source.decode("utf-8", "replace")[:start].encode())
    return next((one for one in functions_near(grammar, root, at) if one.node.start_byte == at), None)


@lru_cache(maxsize=1)
def _is_broken(grammar: Grammar, text: str) -> bool:
    """Whether the old text does not parse; it is the same for all candidates of a task."""
    return parse_bounded(grammar, encode(text)).root_node.has_error


@lru_cache(maxsize=1)
def _compiled(text: str) -> bool:
    """Whether Python takes the text with the least of bodies; it is the same for all candidates of a task."""
    return _compiles(text)


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<text>", "exec", dont_inherit=True)  # finds more than a parser does; runs nothing
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False
    return True
