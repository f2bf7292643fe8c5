"""Code that only says that code is to come: `pass`, `todo!()`, an error "not implemented", a TODO. Text only, no tree.

What counts in a language stands in its grammar file (the table `placeholders`); this module says how it is read.
"""

from __future__ import annotations

import re
from functools import lru_cache

from remask.grammars.language import Grammar

_ARGUMENTS = r"\s*(?:\((?:[^()]|\([^()]*\))*\))?"
_SAYS = r"\btodo\b|\bfixme\b|\bnot\s+(?:yet\s+|been\s+)*implemented|unimplemented|implement\s+(?:me|this|it)\b"
_MESSAGE = rf"(?!\w)[^\"'`]*[\"'`].*(?:{_SAYS}|to\s+be\s+implemented).*[\"'`].*"
_MARK = re.compile(r"\b(?:TODO|FIXME|XXX)\b")


def is_placeholder(grammar: Grammar, statement: str) -> bool:
    """Whether the text of a whole statement is one that stands for code to come."""
    return _pattern(grammar).fullmatch(statement.strip()) is not None


def is_todo(grammar: Grammar, line: str) -> bool:
    """Whether a line is a comment, or a piece of one, that says TODO, FIXME or XXX."""
    rules = grammar.text
    blocks = [opener for opener, _ in rules.block_comments]
    within = ["*"] if blocks else []
    return line.strip().startswith((*rules.line_comments, *blocks, *within)) and _MARK.search(line) is not None


@lru_cache(maxsize=32)
def _pattern(grammar: Grammar) -> re.Pattern[str]:
    rules = grammar.placeholders
    kinds = [re.escape(word) for word in rules.words]
    kinds += [rf"(?:{call}){_ARGUMENTS}" for call in rules.calls]
    kinds += [rf"(?:{call}){_MESSAGE}" for call in rules.messages]
    return re.compile(rf"(?:{'|'.join(kinds) or '(?!)'})\s*;?", re.IGNORECASE | re.DOTALL)
