"""Where drafts come from: one small class a source, tried in the policy's order. Verifies nothing."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace

from remask.engine.decode.canvas import Canvas
from remask.engine.decode.costs import PassCosts
from remask.engine.decode.denoise import Enough
from remask.engine.decode.draft import Draft, Drafter
from remask.engine.decode.head import HeadDrafter
from remask.engine.decode.lookup import LookupIndex
from remask.engine.decode.policy import Source
from remask.engine.decode.regimes.base import Reader, Tails
from remask.engine.decode.request import Request

ALONE = 3
"""Where there is a draft head, tokens of a match that is believed without asking it; shorter ones are read beside."""


class CanvasDrafter(Drafter):
    """Denoises a canvas of masks, in passes of its own; they are counted as they are run."""

    kind = Source.CANVAS.value
    paid = True

    def __init__(self, reader: Reader, enough: Enough) -> None:
        self._reader = reader
        self._enough = enough

    def propose(self, request: Request, size: int) -> Draft:
        """See `Drafter`."""
        size = min(size, request.policy.canvas)
        canvas = self._canvas(request, size) if size else Canvas(0, self._reader.spec.mask_id)
        return Draft(self._reader.denoise(request, canvas, self._enough).leading_run(), kind=self.kind)

    def _canvas(self, request: Request, size: int) -> Canvas:
        return self._reader.canvas(request, size)

    def price(self, size: int, costs: PassCosts) -> float:
        """One pass over the canvas; further ones are rare where a draft is verified."""
        return costs.ms(size)


class SeededDrafter(CanvasDrafter):
    """Denoises a canvas whose first positions hold what is looked up; masks are only what stands behind that."""

    kind = Source.SEEDED.value

    def __init__(self, reader: Reader, enough: Enough, lookup: LookupDrafter) -> None:
        super().__init__(reader, enough)
        self._lookup = lookup

    def _canvas(self, request: Request, size: int) -> Canvas:
        canvas = super()._canvas(request, size)
        canvas.start(self._lookup.propose(request, size).tokens)
        return canvas


class AheadDrafter(Drafter):
    """The pass that verifies one draft drafts the next, for every place where the acceptance may end.

    Source: TiDAR (Liu et al. 2025). A canvas of B positions drafts B - 1 tokens, as its first one
    stands for the verifying pass's own token.
    """

    kind = Source.AHEAD.value

    def propose(self, request: Request, size: int) -> Draft:
        """See `Drafter`."""
        return Draft(request.ahead[:size], kind=self.kind)

    def tails(self, request: Request, draft: list[int], size: int) -> Tails:
        """Behind every place of a draft of its own length; of a longer one, behind the first places and the last."""
        longest = request.policy.canvas - 1
        # After j accepted tokens and the pass's own one, size - j - 1 tokens may be drafted.
        masks = [max(0, min(longest, size - j - 1)) for j in range(len(draft) + 1)]
        return [m if j < longest or j == len(draft) else 0 for j, m in enumerate(masks)]


class LookupDrafter(Drafter):
    """What followed the newest tokens where they stood before: in the prompt, in what is written, or in a guess.

    While the text is as `request.guess` says, the guess goes on. A match of fewer than `shortest` tokens is left to
    other sources.
    """

    kind = Source.LOOKUP.value

    def __init__(self, reader: Reader, guess: list[int], shortest: int = 1) -> None:
        spec = reader.spec
        self._index = LookupIndex({*spec.never, *spec.end_ids})
        self._index.extend([*guess, spec.end_ids[0]] if guess else [])
        self._start = len(self._index)  # of what is known, in the index
        self._shortest = shortest

    def propose(self, request: Request, size: int) -> Draft:
        """See `Drafter`."""
        size = min(size, request.policy.lookup)
        held, known = request.session.tokens, len(self._index) - self._start
        self._index.extend([*held[known:], *request.pending[max(0, known - len(held)) :]])
        written = len(request.written)
        if written < len(request.guess) and request.guess[:written] == request.written:
            return Draft(request.guess[written : written + size], kind="guess")
        tokens, matched = self._index.after(size, self._shortest)
        return Draft(tokens, kind=f"{self.kind}-{matched}")

    def of_any_length(self) -> LookupDrafter:
        """The same index, for matches of a single token, too."""
        other = copy(self)
        other._shortest = 1
        return other


class FirstOf(Drafter):
    """Several sources: the first that has a draft is taken, and what any of them drafts ahead is read along."""

    def __init__(self, drafters: list[Drafter]) -> None:
        self._drafters = drafters

    def propose(self, request: Request, size: int) -> Draft:
        """See `Drafter`."""
        extra = 0.0
        for drafter in self._drafters:
            draft = drafter.propose(request, size)
            extra += draft.extra
            if draft.tokens:
                return replace(draft, extra=extra)
        return Draft([], extra)

    def tails(self, request: Request, draft: list[int], size: int) -> Tails:
        """See `Drafter`."""
        return next((b for d in self._drafters if (b := d.tails(request, draft, size))), ())

    def seen(self, drafted: int, accepted: int) -> None:
        """See `Drafter`."""
        for drafter in self._drafters:
            drafter.seen(drafted, accepted)


def drafters_for(request: Request, reader: Reader, enough: Enough, share: float = 0.0) -> list[Drafter]:
    """A drafter of this request for each of its policy's sources, the preferred first; none for a head that is missing.

    share: what a token costs that the head drafts, in one-token passes.
    """
    policy, head = request.policy, reader.draft_head
    # A short match is worth less than what other sources draft, unless a plan weighs them.
    shortest = 1 if policy.planned or policy.sources[-1] is Source.LOOKUP else 2
    if head is not None and Source.HEAD in policy.sources:
        shortest = ALONE
    lookup = LookupDrafter(reader, request.guess, shortest)
    makers: dict[Source, Callable[[], Drafter]] = {
        Source.NONE: Drafter,
        Source.CANVAS: lambda: CanvasDrafter(reader, enough),
        Source.AHEAD: AheadDrafter,
        Source.LOOKUP: lambda: lookup,
        Source.SEEDED: lambda: SeededDrafter(reader, enough, lookup),
    }
    if head is not None:
        free = {Source.LOOKUP: lookup.of_any_length(), Source.AHEAD: AheadDrafter()}
        beside = [free[source] for source in policy.sources if source in free]
        makers[Source.HEAD] = lambda: HeadDrafter(head, share, beside)
    return [makers[source]() for source in policy.sources if source in makers] or [Drafter()]
