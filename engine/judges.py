"""Makes the judges of each request, as its policy and its purpose want them, and keeps what they share.

Knows grammars, policies and heads; knows no session and decodes nothing.
"""

from __future__ import annotations

import logging

from remask.contract.errors import InputError
from remask.contract.messages import CompletionRequest, Purpose
from remask.engine.decode.guard import Guard
from remask.engine.decode.policy import Policy, Remask
from remask.engine.decode.remask import Falling, Remasker
from remask.engine.decode.stop import StopRules
from remask.engine.judge.blame import Blame
from remask.engine.judge.corrector import ANOTHER, Corrector
from remask.engine.judge.doubter import Doubter
from remask.engine.judge.ending import Ending
from remask.engine.judge.gate import Gate
from remask.engine.judge.names import NamesJudge
from remask.engine.judge.names_blame import CanvasJudge, InTurn, NamesBlame
from remask.engine.judge.packages import Packages
from remask.engine.models.model import Model
from remask.engine.models.spec import Layout
from remask.grammars import GrammarError, grammar_for_language

log = logging.getLogger(__name__)

GATE_MS = 1_000  # what judging may take beyond the decoding's deadline


def known(language: str) -> bool:
    """Whether there is a grammar for a language, be it one that is good for nothing."""
    try:
        return grammar_for_language(language) is not None
    except GrammarError:
        return True


class Judges:
    """Of one engine; a corrector head where it has one."""

    def __init__(self, model: Model, corrector: Corrector | None) -> None:
        self.corrector = corrector
        self._model = model
        self._packages = Packages()
        self._unjudged: set[str] = set()  # languages whose grammar failed, each warned of once

    def gate(self, request: CompletionRequest) -> Gate | None:
        """What may be shown for the request; None where the language has no grammar, or one that is good for nothing.

        Of the latter it warns, once a language.
        """
        try:
            grammar = grammar_for_language(request.language)
            deadline_ms = min(GATE_MS, request.deadline_ms)
            return None if grammar is None else Gate(grammar, request.prefix, request.suffix, deadline_ms=deadline_ms)
        except GrammarError as error:
            if request.language not in self._unjudged:
                self._unjudged.add(request.language)
                log.warning("Completions in %s are not judged by a parser: %s", request.language, error)
            return None

    def remasker(
        self, gate: Gate | None, request: CompletionRequest, policy: Policy, names: NamesJudge | None, rules: StopRules
    ) -> Remasker | None:
        """The judges of unverified canvases: what is verified is the causal reading's own text."""
        wanted = policy.judges
        if policy.verifies or not wanted:
            return None
        if self.corrector is None and Remask.CORRECTOR in wanted and policy.remask != Remask.ALL:
            raise InputError(f"The policy {policy.name!r} wants a corrector head, and there is none.", advice=ANOTHER)
        blame = guard = None
        if gate is not None and Remask.PARSER in wanted:
            closed = self._model.spec.layout is Layout.HOLE  # one canvas from the prefix to the suffix
            blame = Blame(gate.grammar, request.prefix, request.suffix, closed=closed)
            ending = Ending(gate, request.prefix, request.suffix)
            guard = Guard(blame, self._model.decode, ending, rules, frozenset(self._model.spec.end_ids))
        return self.joined(policy, blame, guard, names)

    def joined(self, policy: Policy, blame: Blame | None, guard: Guard | None, names: NamesJudge | None) -> Remasker:
        """Those judges of one hole that there are and that the policy names, as one."""
        wanted = policy.judges
        readers: list[CanvasJudge] = [] if blame is None else [blame]
        if names is not None and Remask.NAMES in wanted:
            readers.append(NamesBlame(names))
        return Remasker(
            InTurn(*readers) if readers else None,
            self._model.decode,
            Falling(policy.doubt, policy.fall, policy.surer) if Remask.CONFIDENCE in wanted else None,
            self.corrector if Remask.CORRECTOR in wanted else None,
            guard,
        )

    def doubter(self, request: CompletionRequest, policy: Policy) -> Doubter | None:
        """Hears the corrector head on a text that is ranked among others."""
        several = request.candidates > 1 or policy.branches > 1
        return Doubter(self.corrector) if self.corrector is not None and several else None

    def names(self, gate: Gate | None, request: CompletionRequest, *, thorough: bool) -> NamesJudge | None:
        """The judge of names; where that can change what is shown, installed packages are looked up, too.

        None where it can change nothing and the request does not ask for it: it costs as much as a pass or two.
        """
        thorough |= request.candidates > 1 or request.purpose is Purpose.FILL
        if gate is None or not (thorough or request.name_facts):
            return None
        others = (snippet.text for snippet in request.context)
        return NamesJudge(gate.grammar, request.prefix, request.suffix, others, self._packages if thorough else None)

    def close(self) -> None:
        """End what looks packages up."""
        self._packages.close()
