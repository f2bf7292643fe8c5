"""The search over texts for one hole: the first text, others from its weak spans, their values, the best of them.

A step re-noises the weakest spans of the texts that promise most (UCB), writes all of them on together, a pass for all,
and values them. Knows a reader, a request and its rules; what a text is worth beside the model's word is the `Aim`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from remask.contract.messages import Reason
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.request import Request
from remask.engine.decode.search.branches import Branch, Branches, Row
from remask.engine.decode.search.expand import Span, noise, rejoined, span_width, weak_spans
from remask.engine.decode.search.settle import Question, settled
from remask.engine.decode.search.terminate import converged, spent, sure_enough
from remask.engine.decode.search.tree import Node, Tree
from remask.engine.decode.search.value import BROKEN_NATS, Aim, between, likelihood, line_end
from remask.engine.decode.stop import StopRules

DRAFT = 4  # tokens of a draft for each branch
MOST_TOKENS = 1024  # written in all branches of a search


@dataclass(eq=False, slots=True)
class Found:
    """A text of a search: its tokens lie in `branch`. `value`: nats, `broken` if it may not be shown.

    `start`: tokens that it shares with the text it was made from, `parent`; `rest`: what stood there behind the span.
    `ways`: the spans that may be re-noised in it. `dropped`: given up before its end.
    """

    number: int
    branch: Branch
    text: str = ""
    reason: Reason = Reason.BUDGET
    ended: bool = False
    value: float = 0.0
    broken: bool = False
    start: int = 0
    rest: list[int] = field(default_factory=list)
    ways: list[Span] = field(default_factory=list)
    parent: Found | None = None
    node: Node[Span] | None = None
    dropped: bool = False


class Search:
    """One request's search. `known`: the prompt's tokens, which the session holds or held, the newest one last."""

    def __init__(
        self,
        reader: Reader,
        request: Request,
        rules: StopRules,
        known: Sequence[int],
        decode: Callable[[list[int]], str],
    ) -> None:
        self._reader = reader
        self._request = request
        self._rules = rules
        self._known = list(known)
        self._decode = decode
        self._policy = request.policy
        self._aim = request.aim or Aim()
        self._following = self._aim.following()
        self._tree: Tree[Span] = Tree(self._policy.explore)
        self._texts: list[Found] = []  # one a node of the tree
        self._born = 0
        self._length = len(request.written)

    @torch.inference_mode()
    def run(self, text: str, reason: Reason) -> list[Found]:
        """All different texts, the best first, from the first one that the request has just written.

        The request then holds the best one's tokens. Whatever ends it early, there is at least the first text.
        """
        request, first = self._request, self.only(text, reason)
        if reason is Reason.CANCELLED or not text.strip() or request.budget.spent(0) is not None:
            return [first]
        request.session.cut_to(self._known[:-1])
        with Branches(self._reader, request) as branches:
            first.branch = branches.start(first.branch.tokens)
            why = self._steps(branches, first)
            found = [self._texts[node.number] for node in self._tree.ranked]
            self._tell("chosen", found[0])
            self._tell("ended", found[0], why)
            branches.leave_to_session(found[0].branch)
        request.written, request.sureness = found[0].branch.written, found[0].branch.sureness
        request.pending = []  # what the session lacks of it is the next request's business
        return found

    def only(self, text: str, reason: Reason) -> Found:
        """The first text alone."""
        request = self._request
        first = self._found(Branch([*self._known[-1:], *request.written], list(request.sureness)), None, 0)
        first.text, first.reason, first.ended = text, reason, True
        return first

    def _steps(self, branches: Branches, first: Found) -> str:
        """Grow the tree until a rule ends it; returns which."""
        policy, wide = self._policy, self._policy.branches - 1
        self._look(branches, [first], 0)
        self._value(branches, [first])
        best, new, tokens = [first.value], list[int](), 0
        if self._request.wanted <= 1 and (why := sure_enough(first.value, -policy.enough)) is not None:
            return why
        while True:
            step = len(new)
            why = spent(step, policy.steps, tokens, MOST_TOKENS) or converged(best, new)
            if why is not None or self._late():
                break
            grown = self._expand(branches, self._tree.choose(wide))
            self._write(branches, grown)
            grown = [one for one in grown if one.ended]
            if step + 1 < policy.steps:
                self._look(branches, grown, step + 1)
            new.append(self._value(branches, grown))
            tokens += sum(len(one.branch.written) - one.start for one in grown)
            for node in self._tree.prune(policy.margin):
                self._tell("pruned", self._texts[node.number], node.pruned)
            best.append(self._tree.best.value)
        if policy.settle and not self._late():
            self._settle(branches)
        return why or "the time is up"

    def _expand(self, branches: Branches, chosen: Sequence[tuple[Node[Span], Span]]) -> list[Found]:
        """A new branch for each chosen span."""
        grown = []
        for node, span in chosen:
            parent = self._texts[node.number]
            branch = branches.fork(parent.branch, span.place, span.token, span.sureness)
            one = self._found(branch, parent, span.place)
            one.rest = parent.branch.written[span.place + span.width :]
            self._tell("born", one, f"{-span.doubt:.2f} nats less likely than the token it stands for")
            grown.append(one)
        return grown

    def _found(self, branch: Branch, parent: Found | None, start: int) -> Found:
        one = Found(self._born, branch, parent=parent, start=start)
        self._born += 1
        return one

    def _write(self, branches: Branches, grown: Sequence[Found]) -> None:
        """Write all of them on, a pass for all, until each has ended or the time is up."""
        for one in grown:
            self._end(one, one.start)
        while (live := [one for one in grown if not (one.ended or one.dropped)]) and not self._late():
            before = [len(one.branch.written) for one in live]
            branches.go_on([one.branch for one in live], [self._draft(one) for one in live])
            for one, start in zip(live, before, strict=True):
                self._end(one, start)
                self._drop(one)

    def _draft(self, one: Found) -> list[int]:
        """What stood behind the span goes on where the text comes back to it."""
        room = self._request.budget.max_tokens - len(one.branch.written) - 1
        written = one.branch.written
        if len(written) == one.start + 1:
            return one.rest[: min(DRAFT, room)]
        return rejoined(one.rest, written[one.start :], min(DRAFT, room))

    def _end(self, one: Found, start: int) -> None:
        """Cut a branch where the hole ends, asked for every token from `start` on."""
        written, ends = one.branch.written, self._reader.spec.end_ids
        for place in range(start, len(written)):
            if written[place] in ends:
                self._cut(one, place, self._decode(written[:place]), Reason.END)
                return
            text = self._decode(written[: place + 1])
            if (stop := self._rules.check(text)) is not None:
                self._cut(one, place + 1, text[: stop.length], stop.reason)
                return
        if len(written) >= self._request.budget.max_tokens:
            self._cut(one, len(written), self._decode(written), Reason.BUDGET)

    def _cut(self, one: Found, count: int, text: str, reason: Reason) -> None:
        branch = one.branch
        del branch.tokens[count + 1 :], branch.slots[count + 1 :]
        del branch.sureness[count + (reason is Reason.END) :]  # the end token's probability counts
        one.text, one.reason, one.ended = text, reason, True

    def _drop(self, one: Found) -> None:
        """Give a text up whose start is less likely than all of the best one: it could be a further candidate only."""
        wanted = self._request.wanted > 1 or not self._following
        if not (one.ended or wanted) and sum(one.branch.sureness) < self._tree.best.value:
            one.dropped = True
            self._tell("pruned", one, "its start is less likely than all of the best text")

    def _look(self, branches: Branches, texts: Sequence[Found], step: int) -> None:
        """Read texts whole, for the probability of every token and the places where they are weak."""
        if not texts:
            return
        level = noise(step, self._policy.steps)
        starts = [len(one.branch.sureness[: one.start + 1]) for one in texts]
        for one, start, rows in zip(texts, starts, branches.scores_of([t.branch for t in texts], starts), strict=True):
            own = self._tokens(one)
            scores = rows[: len(own) - start].log_softmax(-1)
            one.branch.sureness[start:] = scores[range(len(own) - start), own[start:]].tolist()
            one.ways = weak_spans(scores, own, span_width(len(own), level), start)

    def _value(self, branches: Branches, texts: Sequence[Found]) -> int:
        """Value texts and put them into the tree; returns how many were new."""
        known = {node.key for node in self._tree.nodes}
        fresh = [one for one in texts if one.text.strip() and one.text not in known]
        following = branches.log_probabilities([self._row(one) for one in fresh]) if self._following and fresh else []
        likely = {id(one): tuple(nats) for one, nats in zip(fresh, following, strict=False)}
        count = 0
        for one in texts:
            if not one.text.strip():
                self._tell("pruned", one, "it is empty")
                continue
            judged = self._aim.judged(one.text, one.reason)
            one.broken = judged <= -BROKEN_NATS
            one.value = judged + likelihood(one.branch.sureness, likely.get(id(one), ()), self._length)
            one.node, new = self._tree.add(one.text, one.value, one.parent.node if one.parent else None, one.ways)
            count += new
            if new:
                self._texts.append(one)
            self._tell("valued" if new else "merged", one, "it may not be shown" if one.broken else "")
        return count

    def _row(self, one: Found) -> Row:
        """What follows the hole, behind a text as it is put there."""
        count, left = between(one.branch.written, one.text, self._decode)
        left += line_end(self._aim.prefix, one.text, self._aim.suffix)
        known = [*one.branch.tokens[: count + 1], *(self._aim.encode(left) if left else [])]
        slots = one.branch.slots[: min(count + 1, len(known) - 1)]
        return Row(known, slots, self._following)

    def _settle(self, branches: Branches) -> None:
        """Let the texts that hold settle their disputes; what comes of it is one more text, if it is a new one."""
        texts = [self._texts[node.number] for node in self._tree.ranked if not node.pruned]
        texts = [one for one in texts if not one.broken][: self._policy.branches]
        if len(texts) < 3:  # of two texts that differ in one place there is nothing between
            return
        rows = [tuple(self._tokens(one)) for one in texts]

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
        self._end(one, start)
        if one.ended:
            self._look(branches, [one], self._policy.steps)
            self._value(branches, [one])

    def _tokens(self, one: Found) -> list[int]:
        """What was written, and the end token where that ended it."""
        return [*one.branch.written, *(self._reader.spec.end_ids[:1] if one.reason is Reason.END else ())]

    def _late(self) -> bool:
        return self._request.budget.spent(0) is not None

    def _tell(self, what: str, one: Found, why: str = "") -> None:
        """Put what became of a text into the trace."""
        if self._request.trace is None:
            return
        text = one.text or self._decode(one.branch.written)
        parent = one.parent.number if one.parent else -1
        self._request.trace.searched(
            what, text, why, node=one.number, parent=parent, at=one.start, value=round(one.value, 4)
        )


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """How many first tokens are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
