"""Writes texts of a search on, a pass for all of them, until each has ended or cannot win any more.

Knows the request's rules and budget; values nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remask.contract.messages import Reason
from remask.engine.decode.lookup import LONGEST, LookupIndex
from remask.engine.decode.request import Request
from remask.engine.decode.search.branches import Branches
from remask.engine.decode.search.expand import rejoined
from remask.engine.decode.search.found import Found, Teller
from remask.engine.decode.search.weighing import Scales
from remask.engine.decode.stop import StopRules

DRAFT = 4  # tokens of a draft for each branch
SHORTEST = 2  # tokens that a lookup has to match


class Writer:
    """Of one request. Its scales hear of every text that has ended, and say which ones cannot win; `index` drafts."""

    def __init__(
        self,
        request: Request,
        rules: StopRules,
        decode: Callable[[list[int]], str],
        end_ids: Sequence[int],
        scales: Scales,
        index: LookupIndex,
    ) -> None:
        self._request = request
        self._rules = rules
        self._decode = decode
        self._ends = end_ids
        self._scales = scales
        self._index = index

    def write(self, branches: Branches, grown: Sequence[Found], others: Sequence[Found], tell: Teller) -> None:
        """Write all that are grown on; `others` are texts that they have to be better than."""
        for one in grown:
            self.end(one, one.start)
        while live := [one for one in grown if not one.ended and not one.dropped]:
            best = self._scales.best([*others, *grown])
            for one in live:
                if (lacks := self._scales.lacks(one, best)) > 0:
                    one.dropped = True
                    tell("pruned", one, f"its start lacks {lacks:.1f} nats to be worth its end")
            live = [one for one in live if not one.dropped]
            if not live or self._request.budget.spent(0) is not None:
                return
            before = [len(one.branch.written) for one in live]
            branches.go_on([one.branch for one in live], [self._draft(one) for one in live])
            for one, start in zip(live, before, strict=True):
                self.end(one, start)

    def end(self, one: Found, start: int) -> None:
        """Cut a text where the hole ends, asked for every token from `start` on."""
        written = one.branch.written
        for place in range(start, len(written)):
            if written[place] in self._ends:
                self.cut(one, place, self._decode(written[:place]), Reason.END)
                return
            one.text = self._decode(written[: place + 1])
            if (stop := self._rules.check(one.text)) is not None:
                self.cut(one, place + 1, one.text[: stop.length], stop.reason)
                return
        if len(written) >= self._request.budget.max_tokens:
            self.cut(one, len(written), self._decode(written), Reason.BUDGET)

    def cut(self, one: Found, count: int, text: str, reason: Reason) -> None:
        """A text is whole with its first `count` tokens."""
        branch = one.branch
        del branch.tokens[count + 1 :], branch.slots[count + 1 :]
        del branch.sureness[count + (reason is Reason.END) :]  # the end token's probability counts
        branch.doubter = branch.doubter.fork(count) if branch.doubter is not None else None
        one.text, one.reason, one.ended = text, reason, True
        self._scales.judge(one)

    def _draft(self, one: Found) -> list[int]:
        """What stood behind the span goes on where the text comes back to it; else what the prompt says."""
        written = one.branch.written
        size = min(DRAFT, self._request.budget.max_tokens - len(written) - 1)
        if len(written) == one.start + 1:
            return one.rest[:size]
        own = rejoined(one.rest, written[one.start :], size)
        return own or self._index.after(size, SHORTEST, one.branch.tokens[-LONGEST:])[0]
