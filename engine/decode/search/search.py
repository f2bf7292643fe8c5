"""The search over texts for one hole: the first text, others from its weak spans, their values, the best of them.

A step re-noises the weakest spans of the texts that promise most (UCB), writes all of them on together, a pass for all,
and values them. Knows a reader, a request and its rules; what a text is worth beside the model's word is the `Aim`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from remask.contract.errors import ModelError
from remask.contract.messages import Reason
from remask.engine.decode.lookup import LookupIndex
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.request import Request
from remask.engine.decode.search.branches import Branch, Branches, Row
from remask.engine.decode.search.expand import OTHERS, Rivals, Span, noise, span_width, weak_spans
from remask.engine.decode.search.found import Found, Teller, tokens_of
from remask.engine.decode.search.settle import Question, settled
from remask.engine.decode.search.terminate import converged, spent, sure_enough
from remask.engine.decode.search.tree import Tree
from remask.engine.decode.search.weighing import Scales
from remask.engine.decode.search.writing import Writer
from remask.engine.decode.stop import StopRules
from remask.engine.models.memory import is_shortage
from remask.engine.models.passes import Best
from remask.engine.models.transfer import sent, together

MOST_TOKENS = 1024  # written in all branches of a search
LEAST_DISPUTED = 3  # texts; between two that differ in one place there is nothing to settle


class Search:
    """One request's search, made before its first text is written: the session lacks the prompt's newest token."""

    def __init__(self, reader: Reader, request: Request, rules: StopRules, decode: Callable[[list[int]], str]) -> None:
        self._reader = reader
        self._request = request
        self._policy = request.policy
        self._end_id = reader.spec.end_ids[0]
        self._shared = len(request.session.tokens)
        self._newest = [*request.session.tokens[-1:], *request.pending][-1:]
        self._scales = Scales(request)
        self._index = LookupIndex({*reader.spec.never, *reader.spec.end_ids})
        self._known = [*request.session.tokens, *self._newest]
        self._writer = Writer(request, rules, decode, reader.spec.end_ids, self._scales, self._index)
        self._tell = Teller(request, decode)
        self._tree: Tree[Span] = Tree(request.policy.explore)
        self._texts: list[Found] = []  # one a node of the tree
        self._born = 0

    def only(self, text: str, reason: Reason) -> Found:
        """The first text alone, which the request has just written."""
        request = self._request
        first = self._found(Branch([*self._newest, *request.written], list(request.sureness)), None, 0)
        first.text, first.reason, first.ended = text, reason, True
        return first

    @torch.inference_mode()
    def run(self, text: str, reason: Reason) -> list[Found]:
        """All different texts, the best first, from the first one that the request has just written.

        The request then holds the best one's tokens. Whatever ends it early, there is at least the first text.
        """
        request, first = self._request, self.only(text, reason)
        if reason is Reason.CANCELLED or not text.strip() or request.budget.spent(0) is not None:
            return [first]
        request.pending = []  # what the session lacks then is the next request's business
        try:
            found = self._searched(first, text, reason)
        except (ModelError, RuntimeError, MemoryError) as error:
            if not (isinstance(error, ModelError) or is_shortage(error)):
                raise
            self._tell("chosen", first)
            self._tell("ended", first, "memory is short")
            return [first]
        request.written, request.sureness = found[0].branch.written, found[0].branch.sureness
        return found

    def _searched(self, first: Found, text: str, reason: Reason) -> list[Found]:
        """All different texts, the best first; the session then holds what it can of the best one."""
        with Branches(self._reader, self._request, self._shared) as branches:
            first.branch = branches.start(first.branch.tokens, first.branch.sureness)
            self._writer.cut(first, len(self._request.written), text, reason)
            why = self._grow(branches, first)
            found = [self._texts[node.number] for node in self._tree.ranked]
            self._tell("chosen", found[0])
            self._tell("ended", found[0], why)
            branches.leave_to_session(found[0].branch)
        return found

    def _grow(self, branches: Branches, first: Found) -> str:
        """Grow the tree from the first text until a rule ends it; returns which."""
        policy = self._policy
        self._look_at_first(branches, first)
        self._keep([first])
        if self._request.wanted < 2 and not first.broken and (why := sure_enough(first.likely, policy.enough)):
            return why
        self._index.extend([*self._known, *first.branch.written])  # only now: most texts are not searched for others
        best, new, tokens = [first.value], list[int](), 0
        while True:
            step = len(new)
            why = spent(step, policy.steps, tokens, MOST_TOKENS) or converged(best, new)
            if why or self._late():
                break
            grown = self._expand(branches)
            self._writer.write(branches, grown, self._texts, self._tell)
            grown = [one for one in grown if one.ended]
            if step + 1 < policy.steps:
                self._look(branches, grown, step + 1)
            new.append(self._keep(grown))
            tokens += sum(len(one.branch.written) - one.start for one in grown)
            best.append(self._tree.best.value)
            for node in self._tree.prune(policy.margin):
                self._tell("pruned", self._texts[node.number], node.pruned)
        if policy.settle and not self._late():
            self._settle(branches)
        return why or "the time is up"

    def _look_at_first(self, branches: Branches, first: Found) -> None:
        """Find the first text's weak spans; nothing is read for that where its own passes were listened to."""
        rivals = self._request.rivals
        if rivals is None or len(rivals.tokens) < len(tokens_of(first, self._end_id)):
            self._look(branches, [first], 0)
        else:
            self._find_ways(first, rivals, 0, 0)

    def _expand(self, branches: Branches) -> list[Found]:
        """A new branch for each span that the tree chooses."""
        grown = []
        for node, span in self._tree.choose(self._policy.branches - 1):
            parent = self._texts[node.number]
            branch = branches.fork(parent.branch, span.place, span.token, span.sureness)
            one = self._found(branch, parent, span.place)
            one.rest = parent.branch.written[span.place + span.width :]
            self._tell("born", one, f"{-span.doubt:.2f} nats less likely than the token it stands for")
            grown.append(one)
        return grown

    def _found(self, branch: Branch, parent: Found | None, start: int) -> Found:
        one = Found(self._born, branch, parent, start)
        self._born += 1
        return one

    def _look(self, branches: Branches, texts: Sequence[Found], step: int) -> None:
        """Read texts for the probability of every token of their own, and the places where they are weak."""
        each = [(one, min(len(one.branch.sureness), one.start + 1) if one.parent else 0) for one in texts]
        each = [(one, start) for one, start in each if start < len(tokens_of(one, self._end_id))]  # ended by its fork
        if not each:
            return
        said = branches.scores_of([one.branch for one, _ in each], [start for _, start in each])
        looked = list[Tensor]()
        for (one, start), rows in zip(each, said, strict=True):
            own = sent(tokens_of(one, self._end_id)[start:], rows.device)
            rows = rows[: len(own)]
            looked += [rows.log_softmax(-1).gather(1, own[:, None])[:, 0], *Best.among(rows, OTHERS + 1)]
        here = together(*looked)  # by one transfer for all
        for (one, start), sure, tokens, likely in zip(each, here[::3], here[1::3], here[2::3], strict=True):
            one.branch.sureness[start:] = sure.tolist()
            rivals = Rivals()
            rivals.hear(Best(tokens.tolist(), likely.tolist()))
            self._find_ways(one, rivals, start, step)

    def _find_ways(self, one: Found, rivals: Rivals, start: int, step: int) -> None:
        own = tokens_of(one, self._end_id)
        width = span_width(len(own), noise(step, self._policy.steps))
        one.ways = weak_spans(rivals, own, one.branch.sureness, width, start)

    def _keep(self, grown: Sequence[Found]) -> int:
        """Put texts into the tree by their values; returns how many were new."""
        for one in grown:
            self._scales.weigh(one)
            if not one.text.strip():
                self._tell("pruned", one, "it is empty")
        grown = [one for one in grown if one.text.strip()]
        count = 0
        for one in grown:
            one.node, new = self._tree.add(one.text, one.value, one.parent.node if one.parent else None, one.ways)
            count += new
            if new:
                self._texts.append(one)
            self._tell("valued" if new else "merged", one, "it may not be shown" if one.broken else "")
        return count

    def _settle(self, branches: Branches) -> None:
        """Let the texts that hold settle their disputes; what comes of it is one more text, if it is a new one."""
        texts = [self._texts[node.number] for node in self._tree.ranked if not node.pruned]
        texts = [one for one in texts if not one.broken][: self._policy.branches]
        if len(texts) < LEAST_DISPUTED:
            return
        rows = [tuple(tokens_of(one, self._end_id)) for one in texts]

        def ask(questions: list[Question]) -> list[float]:
            asked = []
            for one in questions:
                branch = texts[one.text].branch
                asked.append(Row(branch.tokens[: one.kept + 1], branch.slots[: one.kept], list(one.tokens)))
            return [sum(nats) for nats in branches.log_probabilities(asked)]

        path = settled(rows, [one.branch.sureness for one in texts], ask)
        if path in rows:
            return
        near = max(texts, key=lambda one: _shared(one.branch.written, path))
        start = _shared(near.branch.written, path)
        if start == len(path):
            return
        branch = branches.fork(near.branch, start, path[start], 0.0)
        branch.tokens += path[start + 1 :]
        del branch.sureness[start:]
        one = self._found(branch, near, start)
        self._tell("settled", one)
        self._writer.end(one, start)
        if one.ended:
            self._look(branches, [one], self._policy.steps)
            self._keep([one])

    def _late(self) -> bool:
        return self._request.budget.spent(0) is not None


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """How many first tokens are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
