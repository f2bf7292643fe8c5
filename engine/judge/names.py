"""The names judge: which names of a draft nothing defines. Facts, never a veto.

A name is known if a scope around it binds it, the draft itself does, the language has it, or a piece of another file
that came with the request holds the word. An attribute is judged only where its object is known: of self or this in a
class that inherits nothing, and of Python's installed modules (see packages). Where the parser has lost its way around
the draft, every word of the text counts as known. Knows text and trees; knows no model and no token.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remask.contract.messages import NameFacts
from remask.engine.judge.gate import MAX_WHOLE
from remask.engine.judge.packages import Packages
from remask.engine.judge.scope import Scope, Use, Uses, rules_of, uses, words_around
from remask.grammars.language import Grammar
from remask.grammars.source import encode

if TYPE_CHECKING:
    from tree_sitter import Tree

_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"\w+(?:\.\w+)*")
_IMPORTS = frozenset({"import_statement", "import_from_statement", "try_statement", "if_statement"})
MAX_IMPORT = 2_000  # bytes of one statement


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name that nothing defines, and where the draft has it, in bytes of the draft."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NamesReport:
    """What was found in one draft. `judged` counts names and attributes, each as often as it stands there."""

    judged: int = 0
    unknown: tuple[UnknownName, ...] = ()
    milliseconds: float = 0.0

    @property
    def share(self) -> float:
        """Unknown of judged names, 0 to 1; 0 where none was judged."""
        return len(self.unknown) / self.judged if self.judged else 0.0

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the unknown names stand, in bytes of the draft."""
        return [(one.start, one.end) for one in self.unknown]


class NamesJudge:
    """Judges the drafts for one hole. `others` are texts of other files whose words count as known.

    `packages` looks attributes of installed Python packages up; None leaves them alone. Never raises for a text.
    """

    def __init__(
        self,
        grammar: Grammar,
        prefix: str,
        suffix: str,
        others: Iterable[str] = (),
        packages: Packages | None = None,
    ) -> None:
        self.grammar = grammar
        self.prefix = prefix
        self.suffix = suffix
        self._packages = packages if grammar.name == "python" else None
        self._elsewhere = frozenset(word for text in others for word in _WORD.findall(text))
        self._seen: dict[str, NamesReport] = {}

    def check(self, draft: str) -> NamesReport:
        """The unknown names of `draft`; nothing of a text too large to be judged. Remembered for equal drafts."""
        if draft not in self._seen:
            self._seen[draft] = self._check(draft)
        return self._seen[draft]

    def compare(self, draft: str, shown: str) -> NameFacts:
        """The facts about a draft and what is shown of it."""
        before, after = self.check(draft), self.check(shown)
        unknown = tuple(dict.fromkeys(one.name for one in after.unknown))
        return NameFacts(before.judged, round(before.share, 4), round(after.share, 4), unknown)

    def _check(self, draft: str) -> NamesReport:
        begun = time.perf_counter()
        if not draft.strip() or len(self.prefix) + len(self.suffix) > MAX_WHOLE:
            return NamesReport()
        before, written = encode(self.prefix), encode(draft)
        source = before + written + encode(self.suffix)
        start, end = len(before), len(before) + len(written)
        tree = self.grammar.parse(source)
        found = uses(self.grammar, tree, source, start, end)
        if not found.whole:
            return NamesReport()
        around = words_around(source, start, end) if found.broken or found.own else frozenset()
        judged, unknown = self._names(found, around)
        for use in found.own:
            home = _class_of(use.scope)
            if home is not None and not home.inherits and not _is_dunder(use.name):
                judged += 1
                if use.name not in (found.assigned | around):
                    unknown.append(use)
        if self._packages is not None and not found.broken:
            asked, missing = self._attributes(found, _imports(tree, source), self._packages)
            judged, unknown = judged + asked, unknown + missing
        spans = (UnknownName(u.name, max(u.start, start) - start, min(u.end, end) - start) for u in unknown)
        found_at = tuple(sorted(spans, key=lambda one: one.start))
        return NamesReport(judged, found_at, round((time.perf_counter() - begun) * 1e3, 2))

    def _names(self, found: Uses, around: frozenset[str]) -> tuple[int, list[Use]]:
        """How many bare names were judged, and the unknown among them."""
        builtins = rules_of(self.grammar).builtins
        judged, unknown = 0, []
        for use in found.names:
            if any(scope.inherits and not scope.closed for scope in use.scope.chain()):
                continue
            seen = any(use.name in scope.names for scope in use.scope.chain()) or (found.broken and use.name in around)
            if seen or use.name in builtins or use.name in self._elsewhere:
                judged += 1
            elif not (found.open and use.elsewhere) and use.name.strip("_"):
                judged += 1
                unknown.append(use)
        return judged, unknown

    def _attributes(self, found: Uses, imports: str, packages: Packages) -> tuple[int, list[Use]]:
        """The same for attributes of modules that the file imports, as far as the answers come in time."""
        asked = [use for use in found.attributes if _is_global(use)]
        verdicts = packages.judge(imports, [f"{use.object}.{use.name}" for use in asked])
        missing = [use for use, known in zip(asked, verdicts, strict=True) if known is False]
        return sum(known is not None for known in verdicts), missing


def sentence(facts: NameFacts) -> str:
    """The facts in one sentence."""
    if facts.unknown:
        return f"Nothing defines {', '.join(facts.unknown)}."
    return f"{facts.judged} names of the draft judged; those that are shown are known."


def _imports(tree: Tree, source: bytes) -> str:
    """The statements of a Python file that import something for all of it, in its order."""
    nodes = [n for n in tree.root_node.named_children if n.type in _IMPORTS and n.end_byte - n.start_byte < MAX_IMPORT]
    texts = [source[n.start_byte : n.end_byte].decode("utf-8", "replace") for n in nodes]
    return "\n".join(text for text in texts if "import" in text)


def _is_global(use: Use) -> bool:
    """Whether the object is a name of the whole file, or an attribute of one, which no scope inside hides."""
    if not _DOTTED.fullmatch(use.object):
        return False
    home = next((s for s in use.scope.chain() if use.object.partition(".")[0] in s.names), None)
    return home is not None and home.outer is None


def _class_of(scope: Scope) -> Scope | None:
    return next((one for one in scope.around() if one.is_class), None)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
