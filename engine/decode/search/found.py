"""A text of a search on its way: written, ended, judged, valued; and how the trace hears of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from remask.contract.messages import Reason
from remask.engine.decode.request import Request
from remask.engine.decode.search.branches import Branch
from remask.engine.decode.search.expand import Span
from remask.engine.decode.search.tree import Node


@dataclass(eq=False, slots=True)
class Found:
    """A text of a search: its tokens lie in `branch`. `number`: 0 is the first one.

    `start`: tokens that it shares with the text it was made from, `parent`; `rest`: what stood there behind the span.
    `ended`: it is whole, or else given up where `dropped`. `ways`: spans that may be re-noised in it. `judged`: what
    the judges take off, in nats; `broken`: it may not be shown. `value`: all in all, in nats; `node`: its place.
    """

    number: int
    branch: Branch
    parent: Found | None = None
    start: int = 0
    rest: list[int] = field(default_factory=list)
    text: str = ""
    reason: Reason = Reason.BUDGET
    ended: bool = False
    dropped: bool = False
    ways: list[Span] = field(default_factory=list)
    judged: float = 0.0
    broken: bool = False
    value: float = 0.0
    node: Node[Span] | None = None

    @property
    def likely(self) -> float:
        """Log p of all its tokens, in nats."""
        return sum(self.branch.sureness)


def tokens_of(one: Found, end_id: int) -> list[int]:
    """What was written, and the end token where that ended it."""
    return [*one.branch.written, *([end_id] if one.reason is Reason.END else [])]


class Teller:
    """Puts what becomes of texts into the request's trace, where there is one."""

    def __init__(self, request: Request, decode: Callable[[list[int]], str]) -> None:
        self._trace = request.trace
        self._decode = decode

    def __call__(self, what: str, one: Found, why: str = "") -> None:
        """See `events.Searched`."""
        if self._trace is None:
            return
        text = one.text or self._decode(one.branch.written)
        parent = one.parent.number if one.parent else -1
        self._trace.searched(what, text, why, node=one.number, parent=parent, at=one.start, value=round(one.value, 4))
