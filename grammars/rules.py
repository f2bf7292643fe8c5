"""The tables of a grammar file, as frozen records with their defaults. docs/grammars.md describes the entries.

Knows no language and no parser; `language` reads the files, and each part of Remask asks the table that is its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from remask.grammars.indentation import FOUR


@dataclass(frozen=True, slots=True)
class StringRule:
    """How one kind of string literal begins and ends; a backslash escapes unless `raw`."""

    open: str
    close: str
    lines: bool = False  # may span lines
    raw: bool = False


@dataclass(frozen=True, slots=True)
class ParserRule:
    """The Python package that holds the parser and the function in it that returns the language."""

    package: str
    function: str = "language"


@dataclass(frozen=True, slots=True)
class TextRules:
    """What can be told of a text without parsing it."""

    block_opener: str
    line_comments: tuple[str, ...]
    block_comments: tuple[tuple[str, ...], ...]
    strings: tuple[StringRule, ...]
    function_start: str = ""  # how a line begins that starts a function; asked where indentation makes the blocks
    offside: bool = False
    line_join: str = ""
    skip: tuple[str, ...] = ()  # regular expressions of further literals that hold no code
    statement_words: tuple[str, ...] = ()
    clause_words: tuple[str, ...] = ()
    indent: str = FOUR  # one level, in a file that shows none


@dataclass(frozen=True, slots=True)
class PlaceholderRules:
    """Statements that stand for code to come; regular expressions but for `words`, compared without regard to case."""

    words: tuple[str, ...] = ()  # whole statements
    calls: tuple[str, ...] = ()  # with any arguments, or none
    messages: tuple[str, ...] = ()  # where a text behind it says that something is to do or not implemented


@dataclass(frozen=True, slots=True)
class NodeRules:
    """Tree-sitter queries: `@function` with its `@body`, every `@statement`, and functions that never get a body.

    `blocks` names the nodes whose children are statements, `lists` those that stand for their children in a block.
    """

    functions: str
    statements: str
    blocks: tuple[str, ...]
    lists: tuple[str, ...] = ()
    declarations: str = ""


@dataclass(frozen=True, slots=True)
class NameRules:
    """Where names are defined and used; `engine/judge/scope.py` reads it, docs/grammars.md describes the entries."""

    identifiers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    inherits: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    builtins: str = ""


@dataclass(frozen=True, slots=True)
class GateRules:
    """How the end gate judges this language; see docs/grammars.md."""

    neutral: tuple[str, ...]
    endings: tuple[str, ...]
    leading: tuple[str, ...] = ()
    wrapper: str = ""
    layout: bool = False
    compiler: str = ""


@dataclass(frozen=True, slots=True)
class DefinitionRules:
    """What other files may be shown of a file; the entries of `named` and `code` are node types.

    `kind.field` in `named` counts only where the field is there, as a struct's body is where it is defined.
    """

    named: tuple[str, ...] = ()  # nodes that define a name
    within: tuple[str, ...] = ()  # nodes in which such nodes are looked for
    code: tuple[str, ...] = ()  # those of which only what stands before the body is shown
    docstring: str = ""  # the node that says at the start of a body what it is for
    imports: str = ""  # a regular expression: how a line begins that brings names of other files
    call_mark: str = ""  # what may stand between a name and the bracket of its arguments


NO_NAMES = NameRules()
NO_DEFINITIONS = DefinitionRules()
