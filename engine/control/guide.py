"""Guide text: a wish in words, put before all that a model reads, as a comment in the file's language.

It is read, not written: it belongs to no file. Knows comments; knows no tokens.
"""

from __future__ import annotations

from remask.grammars import GrammarError, grammar_for_language

COMMENT = "#"  # where a language's own is not known


def guide_comment(guide: str, language: str) -> str:
    """The guide as comment lines with an empty line behind them; "" for none."""
    lines = [" ".join(line.split()) for line in guide.splitlines()]
    mark = comment_mark(language)
    text = "".join(f"{mark} {line}\n" for line in lines if line)
    return f"{text}\n" if text else ""


def comment_mark(language: str) -> str:
    """What starts a comment line in a language."""
    try:
        grammar = grammar_for_language(language)
    except GrammarError:
        grammar = None
    marks = grammar.text.line_comments if grammar is not None else ()
    return marks[0] if marks else COMMENT
