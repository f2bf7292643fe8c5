"""The decode loop: a canvas, denoised, verified or settled, taken; until a stop rule fires.

Knows a reader, a request and rules; knows no file, no editor and no grammar. With exact verification the
tokens equal greedy one-token-a-pass decoding of the same weights.
"""

from __future__ import annotations

import math
import time
from functools import partial

import torch

from remask.contract.messages import PromptCounts, Reason
from remask.engine.decode.begin import begun
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.costs import PassCosts, costs_of, draft_share
from remask.engine.decode.denoise import Enough
from remask.engine.decode.draft import Drafter
from remask.engine.decode.drafters import FirstOf, drafters_for
from remask.engine.decode.plan import PlannedDrafter, Planner
from remask.engine.decode.policy import Source
from remask.engine.decode.regimes import reader_for
from remask.engine.decode.regimes.base import LEAST
from remask.engine.decode.request import Request
from remask.engine.decode.search.expand import Rivals
from remask.engine.decode.search.found import Found
from remask.engine.decode.search.search import Search
from remask.engine.decode.stop import StopRules
from remask.engine.models.model import Model
from remask.engine.prompt import Prompt

Ended = tuple[str, Reason]

PATIENCE_S = 5.0  # with less time left, a request does not measure what passes cost


class Decoder:
    """Decodes requests with one model; keeps nothing of them but what a planner learns of speed."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._spec = model.spec
        self._reader = reader_for(model)
        self._planner: Planner | None = None

    def calibrate(self) -> None:
        """Measure what passes cost, unless it is known; else the first patient request with a planned policy does."""
        self._plan_by(costs_of(self._model, patient=True))
        draft_share(self._model)

    @torch.inference_mode()
    def prepare(self, request: Request, prompt: Prompt) -> PromptCounts:
        """Read what the request's session lacks of the prompt, as far as its time goes."""
        counts = self._reader.prepare(request, prompt, lambda: request.budget.spent(0) is not None)
        request.forwards += counts.passes
        return PromptCounts(total=len(prompt), cached=counts.cached, run=counts.run, passes=counts.passes)

    @torch.inference_mode()
    def decode(self, request: Request, rules: StopRules) -> Ended:
        """Fill the hole; returns the text and why it ends there. The session stays usable whatever happens."""
        best = self.texts(request, rules)[0]
        return best.text, best.reason

    @torch.inference_mode()
    def texts(self, request: Request, rules: StopRules) -> list[Found]:
        """As `decode`, but all that the policy's search found, the best first; one text without a search."""
        search = Search(self._reader, request, rules, self._model.decode)
        searches = request.policy.branches > 1 and request.temperature == 0
        if searches:
            request.rivals = Rivals()
        text, reason = self._first(request, rules)
        return search.run(text, reason) if searches else [search.only(text, reason)]

    def _first(self, request: Request, rules: StopRules) -> Ended:
        """Write one text."""
        enough = partial(self._ends, request, rules)
        if request.policy.verifies:
            write = partial(self._verified, request, rules, self._drafter(request, enough))
        else:
            write = partial(self._unverified, request, rules, enough)
        while (spent := request.budget.spent(len(request.written))) is None:
            ended = write()
            if ended is not None:
                # A pass may read on behind the hole's end; the end token's probability counts.
                del request.sureness[len(request.written) + (ended[1] is Reason.END) :]
                return ended
            if request.on_draft is not None:
                request.on_draft(self._model.decode(request.written))
        return self._model.decode(request.written), spent

    def _verified(self, request: Request, rules: StopRules, drafter: Drafter) -> Ended | None:
        """Draft, and take what a causal pass would have written itself, one token more than it accepts."""
        size = request.room - 1
        draft = drafter.propose(request, size)
        request.extra += draft.extra
        tokens = self._to_end(draft.tokens[:size])
        others = [self._to_end(other[:size]) for other in draft.others] if request.policy.acceptance == 1.0 else []
        taken = self._reader.verify(request, tokens, drafter.tails(request, tokens, size), others)
        drafter.seen(len(tokens), len(taken) - 1)
        if request.trace is not None:
            sure = [math.exp(one) for one in request.sureness[-len(taken) :]]
            way = taken[:-1]  # through the first of the drafts that has it
            read = next(one for one in (tokens, *others) if one[: len(way)] == way)
            request.trace.verified(len(request.written), draft.kind, read, taken, sure)
        return self._take(request, taken, rules)

    def _drafter(self, request: Request, enough: Enough) -> Drafter:
        """A drafter for one request, as its policy wants."""
        share = draft_share(self._model) if Source.HEAD in request.policy.sources else 0.0
        drafters = drafters_for(request, self._reader, enough, share)
        if request.policy.planned:
            budget = request.budget
            patient = budget.deadline - time.monotonic() > PATIENCE_S
            costs = costs_of(self._model, patient, lambda: budget.spent(0) is not None)
            return PlannedDrafter(drafters, self._plan_by(costs))
        return drafters[0] if len(drafters) == 1 else FirstOf(drafters)

    def _plan_by(self, costs: PassCosts) -> Planner:
        if self._planner is None:
            self._planner = Planner(costs)
        self._planner.replace_costs(costs)
        return self._planner

    def _unverified(self, request: Request, rules: StopRules, enough: Enough) -> Ended | None:
        """Denoise a canvas and take it as it is."""
        canvas = self._reader.denoise(request, self._plan(request), enough)
        run = canvas.leading_run()
        request.sureness += canvas.confidence[: len(run)].clamp_min(LEAST).log().tolist()
        ended = self._take(request, run, rules)
        if ended is None and not canvas.resolved:
            return None  # out of time in the middle of a canvas
        if ended is None and self._reader.one_canvas:
            return self._model.decode(request.written), Reason.END
        if ended is None:
            self._reader.settle(request, canvas)
        return ended

    def _plan(self, request: Request) -> Canvas:
        """The next canvas: the policy's size, or what the budget leaves."""
        canvas = self._reader.canvas(request, min(request.policy.canvas, request.room))
        return begun(self._reader, request, canvas)

    def _to_end(self, draft: list[int]) -> list[int]:
        """A draft up to its end token: what stands behind it is never written."""
        stop = next((i for i, t in enumerate(draft) if t in self._spec.end_ids), len(draft))
        return draft[: stop + 1]

    def _ends(self, request: Request, rules: StopRules, run: list[int]) -> bool:
        """Whether the hole is full with `run` behind what is written, however the canvas goes on."""
        if any(token in self._spec.end_ids for token in run) or len(run) >= request.room:
            return True
        return bool(run) and rules.check(self._model.decode([*request.written, *run])) is not None

    def _take(self, request: Request, tokens: list[int], rules: StopRules) -> Ended | None:
        """Append tokens one by one; returns the finished text as soon as a rule says that it ends."""
        for token in tokens:
            if token in self._spec.end_ids:
                return self._model.decode(request.written), Reason.END
            request.written.append(token)
            text = self._model.decode(request.written)
            if (stop := rules.check(text)) is not None:
                return text[: stop.length], stop.reason
            if request.room == 0:
                return text, Reason.BUDGET
        return None
