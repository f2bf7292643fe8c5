"""A language as data: one TOML file read into a frozen `Grammar`, found by path or LSP language id.

Knows nothing of what is done with it, and imports tree-sitter only when a parse is asked for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from importlib import import_module, resources
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from remask.contract.errors import InputError
from remask.grammars.rules import (
    NO_DEFINITIONS,
    NO_NAMES,
    DefinitionRules,
    GateRules,
    NameRules,
    NodeRules,
    ParserRule,
    PlaceholderRules,
    TextRules,
)

if TYPE_CHECKING:
    from tree_sitter import Language, Query, Tree

T = TypeVar("T")


class GrammarError(InputError):
    """A grammar file or its parser cannot be used; judging is off for this language."""


@dataclass(frozen=True)
class Grammar:
    """One language. Equal grammars are the same object unless a test loads its own."""

    name: str
    language_ids: tuple[str, ...]
    extensions: tuple[str, ...]
    parser: ParserRule
    text: TextRules
    placeholders: PlaceholderRules
    nodes: NodeRules
    gate: GateRules
    names: NameRules = NO_NAMES
    definitions: DefinitionRules = NO_DEFINITIONS
    declaration_extensions: tuple[str, ...] = ()  # of files that hold no function bodies

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def language(self) -> Language:
        """The tree-sitter language, loaded once. Raises GrammarError where its package is missing or unfit."""
        return _tree_sitter_language(self.parser.package, self.parser.function)

    @cached_property
    def function_query(self) -> Query:
        """The query for `@function` and `@body`. Raises GrammarError."""
        return _query(self, self.nodes.functions)

    @cached_property
    def statement_query(self) -> Query:
        """The query for `@statement`. Raises GrammarError."""
        return _query(self, self.nodes.statements)

    @cached_property
    def declaration_query(self) -> Query | None:
        """The query whose `@function` never gets a body, where the language has such. Raises GrammarError."""
        return _query(self, self.nodes.declarations) if self.nodes.declarations else None

    def has_bodies(self, path: str | PurePath) -> bool:
        """Whether functions have bodies in a file of this name: in one that only declares things they have none."""
        return not str(path).lower().endswith(self.declaration_extensions)

    def parse(self, source: bytes) -> Tree:
        """Parse UTF-8 bytes afresh. Raises GrammarError where the parser cannot be loaded."""
        from tree_sitter import Parser

        return Parser(self.language).parse(source)


def grammar_for_language(language_id: str) -> Grammar | None:
    """The grammar for an LSP language id; None for an unknown one. Raises GrammarError for a damaged grammar file."""
    found = _index()
    if language_id in found.broken:
        raise found.broken[language_id]
    return found.by_id.get(language_id)


def grammar_for_path(path: str | PurePath) -> Grammar | None:
    """The grammar for a file name by its extension; None for an unknown one. Raises GrammarError as above."""
    name = language_of(path)
    return grammar_for_language(name) if name else None


def language_of(path: str | PurePath) -> str | None:
    """The LSP language id for a file name, or None."""
    found = _index().by_extension.get(PurePath(path).suffix.lower())
    return found.language_ids[0] if found else None


def grammars() -> tuple[Grammar, ...]:
    """All grammars that load, in the order of their names."""
    return tuple(sorted({id(g): g for g in _index().by_id.values()}.values(), key=lambda g: g.name))


def load_grammar(text: str, source: str) -> Grammar:
    """Read a grammar from TOML text; `source` names it in messages. Raises GrammarError for anything out of place."""
    try:
        grammar = _build(Grammar, tomllib.loads(text), source)
    except tomllib.TOMLDecodeError as error:
        raise GrammarError(f"The grammar {source} is not TOML: {error}.") from None
    _check_values(grammar, source)
    return grammar


@dataclass(frozen=True, slots=True)
class _Index:
    by_id: dict[str, Grammar]
    by_extension: dict[str, Grammar]
    broken: dict[str, GrammarError]


@cache
def _index() -> _Index:
    index = _Index({}, {}, {})
    for file in sorted(resources.files("remask.grammars").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".toml"):
            continue
        try:
            grammar = load_grammar(file.read_text("utf-8"), file.name)
        except GrammarError as error:
            index.broken[file.name.removesuffix(".toml")] = error
            continue
        index.by_id.update(dict.fromkeys(grammar.language_ids, grammar))
        index.by_extension.update(dict.fromkeys(grammar.extensions, grammar))
    return index


@cache
def _tree_sitter_language(package: str, function: str) -> Language:
    from tree_sitter import Language

    try:
        return Language(getattr(import_module(package), function)())
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise GrammarError(
            f"The parser package {package} cannot be used: {error}.",
            advice="Install Remask again with its dependencies.",
        ) from error


def _query(grammar: Grammar, source: str) -> Query:
    from tree_sitter import Query, QueryError

    try:
        return Query(grammar.language, source)
    except QueryError as error:
        raise GrammarError(f"The grammar {grammar.name} has a query that does not fit its parser: {error}.") from error


def _check_values(grammar: Grammar, source: str) -> None:
    if not grammar.language_ids:
        raise GrammarError(f"The grammar {source} names no language id.")
    wrong = [e for e in (*grammar.extensions, *grammar.declaration_extensions) if not e.startswith(".")]
    if wrong:
        raise GrammarError(f"The grammar {source} has an extension without a dot: {wrong[0]!r}.")
    if any(len(pair) != 2 for pair in grammar.text.block_comments):
        raise GrammarError(f"The grammar {source} has a block comment that is not a pair of opener and closer.")
    if grammar.gate.compiler not in ("", "python"):
        raise GrammarError(f"The grammar {source} names an unknown compiler: {grammar.gate.compiler!r}.")
    if not grammar.gate.neutral:
        raise GrammarError(f"The grammar {source} has no neutral statement.")
    if not grammar.text.indent or grammar.text.indent.strip(" \t"):
        raise GrammarError(f"The grammar {source} has an indentation that is not white space: {grammar.text.indent!r}.")
    words = grammar.placeholders
    text, imports = grammar.text, grammar.definitions.imports
    for pattern in (*text.skip, text.function_start, *words.calls, *words.messages, imports):
        try:
            re.compile(pattern)
        except re.error as error:
            raise GrammarError(f"The grammar {source} has a bad regular expression {pattern!r}: {error}.") from None


def _build(kind: type[T], table: Mapping[str, Any], where: str) -> T:
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise GrammarError(f"The grammar {where} has an unknown entry {unknown[0]!r}.")
    missing = sorted(n for n, f in known.items() if n not in table and f.default is MISSING)
    if missing:
        raise GrammarError(f"The grammar {where} lacks {missing[0]!r}.")
    return kind(**{name: _value(hints[name], value, f"{where}: {name}") for name, value in table.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` as the annotated type: a string, a flag, a nested table or a tuple of one of these."""
    arguments = getattr(hint, "__args__", ())
    if arguments:
        if not isinstance(value, list):
            raise GrammarError(f"The grammar {where} is not a list.")
        return tuple(_value(arguments[0], item, where) for item in value)
    if hint in (str, bool):
        if not isinstance(value, hint):
            raise GrammarError(f"The grammar {where} is not {'text' if hint is str else 'true or false'}.")
        return value
    if not isinstance(value, dict):
        raise GrammarError(f"The grammar {where} is not a table.")
    return _build(hint, value, where)
