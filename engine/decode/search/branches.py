"""Several continuations of one session in a pass: the prompt's keys and values are there once, for all of them.

What the branches add lies mixed behind the session's entries, in the same cache, and a mask says who sees what (tree
attention, as in SpecInfer, Miao et al. 2023). What is too much for memory goes aside (see `aside`). Knows tokens and a
reader; values nothing and ends nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from weakref import ref

import torch
from torch import Tensor

from remask.engine.decode.accept import Heard, accepted
from remask.engine.decode.regimes.base import LEAST, Reader
from remask.engine.decode.request import Request
from remask.engine.decode.search.aside import Aside
from remask.engine.judge.doubter import Doubter
from remask.engine.models.passes import Best, Pass
from remask.engine.models.transfer import onto, picked_rows, sent

MOST_ENTRIES = 1024  # tokens that the branches of one session hold besides it; what is more goes aside
LEAST_FREED = 4  # part of them that has to be gained by that


@dataclass(eq=False, slots=True, weakref_slot=True)
class Branch:
    """A continuation. `tokens`: the newest known one and what was written; `sureness`: log p of each written one.

    `slots`: where the entries of its first tokens lie, counted from the end of what all share; where there are none,
    those of its first `kept` tokens may lie `aside`, under that number. `doubter`: hears the corrector head on it,
    where that is wanted.
    """

    tokens: list[int]
    sureness: list[float] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    doubter: Doubter | None = None
    aside: int | None = None
    kept: int = 0

    @property
    def written(self) -> list[int]:
        """What was written."""
        return self.tokens[1:]


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens to be scored: `scored` behind the `known` ones, whose first ones have their entries at `slots`."""

    known: list[int]
    slots: list[int]
    scored: list[int]


class Branches:
    """The branches of one request; all share the first `shared` tokens of its session, which may hold more.

    A context: when it is left, the session holds what all share, whatever happened, and what was left to it.
    """

    def __init__(self, reader: Reader, request: Request, shared: int, most: int = MOST_ENTRIES) -> None:
        self._reader = reader
        self._request = request
        self._shared = shared
        self._written = request.session.tokens[shared:]  # by the session itself, before the branches
        del request.session.tokens[shared:]
        self._most = most
        self._aside = Aside(request.shelf)
        self._all: list[ref[Branch]] = []  # those that nobody else knows any more will not be expanded
        self._kept: Branch | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._aside.clear()
        kept = list[int]()
        if error is None and self._kept is not None:
            slots = self._kept.slots
            kept = self._kept.tokens[: next((i for i, slot in enumerate(slots) if slot != i), len(slots))]
        self._request.session.cache.truncate(self._shared + len(kept))  # at once: what is cut off may be another's now
        self._request.session.tokens += kept

    def leave_to_session(self, branch: Branch) -> None:
        """Let the session have the first tokens of a branch, as far as their entries lie right behind its own."""
        self._kept = branch

    @property
    def entries(self) -> int:
        """Tokens whose keys and values the branches hold besides the shared ones."""
        return self._request.session.cache.length - self._shared

    def start(self, tokens: list[int], sureness: Sequence[float] = ()) -> Branch:
        """A branch of its own; `tokens` start with the newest known one. What the session holds of it is not read."""
        same = zip(tokens, self._written, strict=False)
        held = next((i for i, (a, b) in enumerate(same) if a != b), min(len(tokens), len(self._written)))
        return self._added(Branch(tokens, list(sureness), list(range(held)), self._request.doubter))

    def fork(self, branch: Branch, place: int, token: int, sureness: float) -> Branch:
        """A branch with another token at a place of what was written, sharing all entries before it."""
        tokens = [*branch.tokens[: place + 1], token]
        doubter = branch.doubter.fork(place, 1) if branch.doubter is not None else None
        one = Branch(tokens, [*branch.sureness[:place], sureness], branch.slots[: place + 1], doubter)
        one.aside, one.kept = branch.aside, min(branch.kept, place + 1)
        return self._added(one)

    def _added(self, branch: Branch) -> Branch:
        self._all.append(ref(branch))
        return branch

    def go_on(self, branches: Sequence[Branch], drafts: Sequence[list[int]]) -> list[int]:
        """One pass: every branch takes what it accepts of its draft and one token of its own, exactly.

        Returns how many each accepted. The branches' tokens, sureness and entries grow.
        """
        self._make_ready(branches, sum(map(len, drafts)))
        read = [[*b.tokens[len(b.slots) :], *draft] for b, draft in zip(branches, drafts, strict=True)]
        before = self.entries
        hidden = self._forward([b.slots for b in branches], read)
        self._request.session.cache.advance(len(hidden))
        ends = _ends(read)
        rows = [range(end - len(draft) - 1, end) for end, draft in zip(ends, drafts, strict=True)]
        picked = picked_rows(hidden, [row for one in rows for row in one])
        scores = self._reader.scores(picked) if any(b.doubter is not None for b in branches) else None
        best = self._reader.best(picked) if scores is None else Best.of(scores, 1)
        counts, at = [], 0
        for branch, draft, end, tokens in zip(branches, drafts, ends, read, strict=True):
            own = slice(at, at + len(draft) + 1)
            at = own.stop
            count = _take(branch, draft, _heard(best, own))
            first = before + end - len(tokens)
            branch.slots += range(first, first + len(tokens) - len(draft) + count)
            if branch.doubter is not None and scores is not None:
                kept = range(end - len(draft) - 1, end - len(draft) + count)
                branch.doubter.read(kept, scores[own][: count + 1], branch.tokens[-count - 1 :])
            counts.append(count)
        return counts

    def scores_of(self, branches: Sequence[Branch], starts: Sequence[int]) -> list[Tensor]:
        """What the model says at every place of what was written from `start` on, and behind its end.

        [written - start + 1, vocab] float32 for each branch. One pass; afterwards they hold all their entries.
        """
        for branch, start in zip(branches, starts, strict=True):
            del branch.slots[start:]
            branch.kept = min(branch.kept, start)
        self._make_ready(branches, 0)
        read = [b.tokens[len(b.slots) :] for b in branches]
        hidden = self._forward([b.slots for b in branches], read)
        first = self.entries
        self._request.session.cache.advance(len(hidden))
        rows = []
        for branch, start, tokens, end in zip(branches, starts, read, _ends(read), strict=True):
            branch.slots += range(first + end - len(tokens), first + end)
            rows.append(range(end - (len(branch.tokens) - start), end))
        scores = self._reader.scores(picked_rows(hidden, [row for one in rows for row in one]))
        each = list(scores.split([len(one) for one in rows]))
        for branch, start, own, said in zip(branches, starts, rows, each, strict=True):
            if branch.doubter is not None:
                branch.doubter = branch.doubter.fork(start)
                branch.doubter.read(own, said, [*branch.written[start:], int(said[-1].argmax())])
        return each

    def log_probabilities(self, rows: Sequence[Row]) -> list[list[float]]:
        """How likely each branch finds tokens that are not its own: one pass, nothing of which is kept."""
        read = [[*row.known[len(row.slots) :], *row.scored[:-1]] for row in rows]
        hidden = self._forward([row.slots for row in rows], read)
        places = [range(end - len(row.scored), end) for end, row in zip(_ends(read), rows, strict=True)]
        scores = self._reader.scores(picked_rows(hidden, [place for one in places for place in one])).log_softmax(-1)
        wanted = sent([t for row in rows for t in row.scored], scores.device)
        likely = scores.gather(-1, wanted[:, None])[:, 0].cpu()
        return [part.tolist() for part in likely.split([len(row.scored) for row in rows])]

    def _forward(self, slots: Sequence[list[int]], read: Sequence[list[int]]) -> Tensor:
        """One counted pass that reads some tokens behind each of some entries: hidden states [T, width]."""
        held, count = self.entries, sum(map(len, read))
        device = self._reader.transformer.device
        mask = torch.zeros(count, held + count, dtype=torch.bool)  # of the branches' entries, and the pass's own rows
        positions: list[int] = []
        for own, tokens, end in zip(slots, read, _ends(read), strict=True):
            rows = slice(end - len(tokens), end)
            mask[rows, own] = True
            mask[rows, held + rows.start : held + end] = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
            start = self._shared + len(own)
            positions += range(start, start + len(tokens))
        flat = sent([t for one in read for t in one], device)
        step = Pass(flat, sent(positions, device), onto(mask, device))
        doubter = self._request.doubter
        return self._reader.forward(self._request, step, None if doubter is None else doubter.taps())

    def _make_ready(self, branches: Sequence[Branch], more: int) -> None:
        """Make room for what these branches lack and `more` tokens, and bring back what they have aside."""
        lacked = sum(len(b.tokens) - len(b.slots) for b in branches)
        if self.entries + lacked + more > self._most:
            self._put_aside(branches)
        back: dict[int, list[int]] = {}
        for branch in branches:
            if branch.aside is not None and not branch.slots:
                if branch.aside not in back:
                    back[branch.aside] = self._brought_back(branch.aside)
                branch.slots = back[branch.aside][: branch.kept]
            branch.aside, branch.kept = None, 0

    def _put_aside(self, live: Sequence[Branch]) -> None:
        """Keep the entries of these branches in memory alone, right behind what all share.

        What drafts left in vain is dropped; the other branches' entries go aside or have to be read again. Where little
        is gained, these branches need more than there should be.
        """
        stay = sorted({slot for branch in live for slot in branch.slots})
        if self.entries - len(stay) < self._most // LEAST_FREED:
            return
        cache = self._request.session.cache
        held = cache.snapshot(self._shared)
        for branch in filter(None, (known() for known in self._all)):
            if branch not in live and branch.slots:
                branch.aside, branch.kept = self._aside.put(held[:, :, :, branch.slots]), len(branch.slots)
                branch.slots = []
        cache.restore(held[:, :, :, stay], self._shared)
        places = {slot: place for place, slot in enumerate(stay)}
        for branch in live:
            branch.slots = [places[slot] for slot in branch.slots]
        self._written = []

    def _brought_back(self, number: int) -> list[int]:
        """Where the entries that were put aside lie now; nothing where they are lost."""
        entries, cache = self._aside.take(number), self._request.session.cache
        if entries is None:
            return []
        first = self.entries
        try:
            cache.restore(entries, cache.length)
        except ValueError:  # of another shape: not what was put there
            return []
        return [*range(first, self.entries)]


def _ends(read: Sequence[list[int]]) -> list[int]:
    """The row behind each branch's last one."""
    ends, at = [], 0
    for tokens in read:
        at += len(tokens)
        ends.append(at)
    return ends


def _heard(best: Best, rows: slice) -> Heard:
    """What the rows of a branch say, of the best tokens behind all of them."""
    own = [tokens[0] for tokens in best.tokens[rows]]
    return Heard(own, [max(likely[0], math.log(LEAST)) for likely in best.likely[rows]], [False] * len(own), [])


def _take(branch: Branch, draft: list[int], said: Heard) -> int:
    """Append what a branch's rows [draft + 1] accept of its draft, and their own token; returns how much of it."""
    count = accepted(draft, said)
    branch.sureness += said.likely[: count + 1]
    branch.tokens += [*draft[:count], said.own[count]]
    return count
