"""The name that a definition gives, in any of the grammars. Knows trees only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def name_of(node: Node, source: bytes) -> str:
    """The name that a definition gives, or nothing: lambdas have none. `source` is what was parsed."""
    found: Node | None = node
    while found is not None and found.child_count:
        found = found.child_by_field_name("name") or found.child_by_field_name("declarator")
    return source[found.start_byte : found.end_byte].decode("utf-8", "replace") if found is not None else ""
