"""Texts in which a `|` marks the cursor, and the stub that is found there."""

from remask.grammars import Grammar, grammar_for_language, grammars
from remask.lsp_server.holes import stub_here
from remask.lsp_server.parsed import Stub
from remask.lsp_server.stubs import function_stub


def grammar_of(language: str) -> Grammar:
    """The grammar for a language id, or for a grammar's own name."""
    grammar = grammar_for_language(language) or next(one for one in grammars() if one.name == language)
    assert grammar is not None
    return grammar


def stub_in(language: str, marked: str, *, whole: bool = True) -> tuple[str, Stub | None]:
    text = marked.replace("|", "")
    return text, (function_stub if whole else stub_here)(grammar_of(language), text, marked.index("|"))
