"""Whether a whole text parses, by the strictest parser at hand: CPython's own for Python, tree-sitter for the rest.

Knows no draft and no cursor. Never raises for a text, whatever is in it.
"""

from __future__ import annotations

import threading
import warnings

from remask.grammars.language import Grammar
from remask.grammars.layout import layout_errors
from remask.grammars.source import encode

STACK_BYTES = 16 << 20
"""The stack that CPython's parser gets: it gives up by itself at a depth that needs under 1 MB, and half of that,
the default of a thread on macOS, would end the process."""

_lock = threading.Lock()


def parses(grammar: Grammar, text: str) -> bool:
    """Whether `text` is a whole program; a text that exhausts the parser counts as one that does not parse."""
    return python_parses(text) if grammar.gate.compiler == "python" else clean(grammar, text)


def clean(grammar: Grammar, text: str) -> bool:
    """Whether tree-sitter sees no error in `text` and, where indentation counts, every line stands in its place."""
    source = encode(text)
    root = grammar.parse(source).root_node
    if root.has_error:
        return False
    return not grammar.gate.layout or next(layout_errors(root, source), None) is None


def python_parses(text: str) -> bool:
    """Whether `ast.parse` of the running interpreter takes `text`; warnings are silent and depth cannot crash."""
    holds: list[bool] = []
    with _lock:  # the stack size and the warning filters belong to the whole process
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=_compile, args=(text, holds), name="remask-parse")
            thread.start()
        finally:
            threading.stack_size(before)
        thread.join()
    return bool(holds)


def _compile(text: str, holds: list[bool]) -> None:
    import ast

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text.removeprefix("\ufeff"))
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError):
            return
    holds.append(True)
