"""The names that a stretch of a text uses and those it can see, from the tree and the grammar's [names] table.

One walk: scopes that do not touch the stretch are not entered, only their own names are noted. The order of
statements does not count. Knows trees, no language, and nothing of what other files define. Offsets are in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from remask.grammars.language import Grammar
from remask.grammars.names import name_of
from remask.grammars.rules import NameRules

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_NODES = 60_000
"""Nodes that are looked at; a text with more around the stretch is not judged (about 50 ms)."""

_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Scope:
    """A node within which names are visible. `inherits`: it has names from elsewhere that nobody lists."""

    outer: Scope | None
    node: Node
    closed: bool = False
    is_class: bool = False
    inherits: bool = False
    names: set[str] = field(default_factory=set)

    def chain(self) -> Iterator[Scope]:
        """The scope and those around it whose names are seen from it."""
        yield self
        scope = self.outer
        while scope is not None:
            if not scope.closed:
                yield scope
            scope = scope.outer

    def around(self) -> Iterator[Scope]:
        """The scope and all around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


@dataclass(frozen=True, slots=True)
class Use:
    """A name that the stretch reads, in bytes of the text. `elsewhere`: where it stands other files may define it."""

    name: str
    start: int
    end: int
    scope: Scope
    elsewhere: bool = False
    object: str = ""  # of an attribute: the expression before it


@dataclass(slots=True)
class Uses:
    """What a walk found. `own` are attributes of self or this, `attributes` those of anything else."""

    names: list[Use] = field(default_factory=list)
    own: list[Use] = field(default_factory=list)
    attributes: list[Use] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)  # attributes of self or this that the stretch itself sets
    open: bool = False  # names come into the text that nothing in it lists
    broken: bool = False  # the parser has lost its way around the stretch
    whole: bool = True  # every node that matters was looked at


def uses(grammar: Grammar, tree: Tree, source: bytes, start: int, end: int) -> Uses:
    """What `source[start:end]` uses. A grammar without rules for names gives nothing."""
    return _Walk(rules_of(grammar), source, start, end).run(tree) if grammar.names.identifiers else Uses()


def words_around(source: bytes, start: int, end: int) -> frozenset[str]:
    """All words of a text but those of the stretch; a word that the stretch only goes on with is not one."""
    head = re.sub(r"\w+\Z", "", source[:start].decode("utf-8", "replace"))
    tail = re.sub(r"\A\w+", "", source[end:].decode("utf-8", "replace"))
    return frozenset(_WORD.findall(f"{head} {tail}"))


@dataclass(frozen=True, slots=True)
class Rules:
    """A grammar's [names] table as sets, for one look-up a node."""

    table: NameRules
    identifiers: frozenset[str]
    scopes: frozenset[str]
    binds: frozenset[str]
    patterns: frozenset[str]
    ignored: frozenset[str]
    elsewhere: frozenset[str]
    members: dict[str, tuple[str, str]]  # node type -> fields of the object and of the attribute
    builtins: frozenset[str]


@lru_cache(maxsize=32)
def rules_of(grammar: Grammar) -> Rules:
    """The rules for names of one grammar."""
    table = grammar.names
    members = [member.split(".") for member in table.members]
    return Rules(
        table,
        frozenset(table.identifiers),
        frozenset(table.scopes),
        frozenset(table.binds),
        frozenset(table.patterns),
        frozenset(table.ignored),
        frozenset(table.elsewhere),
        {kind: (obj, attribute) for kind, obj, attribute in members},
        frozenset(table.builtins.split()),
    )


@dataclass(frozen=True, slots=True)
class _Inside:
    """Where the walk is: the node whose children are looked at, its scope, and whether names in it are bound."""

    kind: str
    scope: Scope
    bind: bool = False


class _Walk:
    def __init__(self, rules: Rules, source: bytes, start: int, end: int) -> None:
        self.rules = rules
        self.source = source
        self.start = start
        self.end = end
        self.found = Uses()

    def run(self, tree: Tree) -> Uses:
        cursor = tree.walk()
        root = tree.root_node
        self._note(root)
        path = [_Inside(root.type, Scope(None, root))]
        seen = 0
        if not cursor.goto_first_child():
            return self.found
        while path:
            seen += 1
            node = cursor.node
            inside = self._visit(node, cursor.field_name or "", path[-1]) if node is not None else None
            if inside is not None and cursor.goto_first_child():
                path.append(inside)
                continue
            while path and not cursor.goto_next_sibling():
                cursor.goto_parent()
                path.pop()
            if seen > MAX_NODES:
                self.found.whole = False
                break
        return self.found

    def _visit(self, node: Node, name: str, at: _Inside) -> _Inside | None:
        """Take note of a node; returns what its children are in, None for those that need no look."""
        rules, kind = self.rules, node.type
        if not node.is_named:
            return None
        key = f"{at.kind}.{name}"
        bind = key in rules.binds or at.kind in rules.binds or (at.bind and bool({key, at.kind} & rules.patterns))
        skipped = bool({key, kind} & rules.ignored) or (name == "name" and at.kind in rules.scopes)
        if skipped and not bind:
            return None
        if node.child_count == 0 or (bind and "string" in kind):
            self._leaf(node, key, at, bind)
            return None
        self._note(node)
        if kind in rules.members:
            self._member(node, at.scope, bind)
        if kind in rules.scopes:
            at.scope.names.add(name_of(node, self.source))
            return _Inside(kind, self._scope(node, at.scope), bind) if self._touches(node) else None
        return _Inside(kind, at.scope, bind)

    def _note(self, node: Node) -> None:
        if node.type in self.rules.table.open:
            self.found.open = True
        if node.type == "ERROR" and node.start_byte <= self.start and self.end <= node.end_byte:
            self.found.broken = True

    def _leaf(self, node: Node, key: str, at: _Inside, bind: bool) -> None:
        name = self._text(node)
        if bind:
            at.scope.names.update(_WORD.findall(name) if "string" in node.type else [name])
        elif node.type in self.rules.identifiers:
            if at.kind == "ERROR":  # it may be anything, a definition too
                at.scope.names.add(name)
            elif self._touches(node) and not (name[:1].islower() and f"{key}:lower" in self.rules.ignored):
                marks = {key, node.type, "Capital" if name.lstrip("_")[:1].isupper() else ""}
                self.found.names.append(self._use(node, at.scope, bool(marks & self.rules.elsewhere)))

    def _member(self, node: Node, scope: Scope, bind: bool) -> None:
        obj, attribute = (node.child_by_field_name(name) for name in self.rules.members[node.type])
        if obj is None or attribute is None or not self._touches(attribute):
            return
        if self._text(obj) not in self.rules.table.own:
            self.found.attributes.append(self._use(attribute, scope, object_=self._text(obj)))
        elif bind:
            self.found.assigned.add(self._text(attribute))
        else:
            self.found.own.append(self._use(attribute, scope, object_=self._text(obj)))

    def _scope(self, node: Node, outer: Scope) -> Scope:
        table, kind = self.rules.table, node.type
        return Scope(outer, node, kind in table.closed, kind in table.classes, self._inherits(node))

    def _inherits(self, node: Node) -> bool:
        """Whether a path of node types, as the grammar gives them, leads down from the scope's node."""
        paths = (entry.split("/") for entry in self.rules.table.inherits)
        return any(path[0] == node.type and _leads(node, path[1:]) for path in paths)

    def _use(self, node: Node, scope: Scope, elsewhere: bool = False, object_: str = "") -> Use:
        return Use(self._text(node), node.start_byte, node.end_byte, scope, elsewhere, object_)

    def _touches(self, node: Node) -> bool:
        return node.start_byte < self.end and self.start < node.end_byte

    def _text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _leads(node: Node, path: list[str]) -> bool:
    if not path:
        return True
    return any(child.type == path[0] and _leads(child, path[1:]) for child in node.named_children)
