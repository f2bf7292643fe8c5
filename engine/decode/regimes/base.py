"""What all readers share: forward passes that are counted, and scores with the marks out of reach.

A reader holds no state of a request: that lies in the `Request` and its session.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from remask.contract.messages import PromptCounts
from remask.engine.control.penalties import repeated
from remask.engine.decode.accept import accepted, heard
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.contrast import Contrast
from remask.engine.decode.denoise import Enough, denoise
from remask.engine.decode.request import Request
from remask.engine.decode.sample import choose
from remask.engine.decode.search.expand import OTHERS
from remask.engine.decode.tree import DraftTree
from remask.engine.judge.corrector import Corrector
from remask.engine.models.kv import GROWTH
from remask.engine.models.memory import shortage_said
from remask.engine.models.model import Model
from remask.engine.models.passes import Best, Confidence, Pass, Taps
from remask.engine.models.transfer import picked_rows, sent
from remask.engine.prompt import Prompt

LEAST = 1e-9  # a probability whose logarithm is still finite

Tails = Sequence[int]
"""What a verifying pass drafts: how many masks it reads behind the first j draft tokens, for each j from 0 on.

Acceptance ends at one place j, and what was read for that place is the next draft; the other tails are waste.
Source: TiDAR (Liu et al. 2025).
"""


class Taken(NamedTuple):
    """What a verifying pass writes: the rows of its tree on the way, the root first, and a token behind each of them.

    drafted: what its masks say, in order.
    """

    way: list[int]
    written: list[int]
    drafted: list[int]


class Reader(ABC):
    """How one regime reads. `one_canvas`: the hole is one canvas, and full when that is resolved.

    `rescores`: a denoising pass can score committed tokens, too. `plain`: scores are those of its `states`.
    """

    one_canvas = False
    plain = True
    rescores = True

    def __init__(self, model: Model) -> None:
        self.spec = model.spec
        self.transformer = model.transformer
        self.draft_head = model.draft_head
        self._never = sent(model.spec.never, self.transformer.device)

    def prepare(self, request: Request, prompt: Prompt, cancelled: Callable[[], bool]) -> PromptCounts:
        """Read what the session lacks of `prompt`; leaves known tokens that it does not hold in `request.pending`.

        Unless a regime says otherwise, that is the newest token, which the first pass starts with.
        """
        request.pending = prompt.tokens[-1:]
        return self.read_causally(request, prompt.tokens, cancelled)

    def canvas(self, request: Request, size: int) -> Canvas:
        """A fresh canvas of about `size` positions behind the pending tokens."""
        return Canvas(size, self.spec.mask_id)

    def predict(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """One denoising pass: scores of the `wanted` positions ([B] bool, by default the open ones) in order.

        [R, vocab] float32. Committed positions are wanted only where `rescored` says that they can be scored.
        """
        return self.scores(self.states(request, canvas, wanted))

    def states(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """The same pass, up to the hidden states [R, width] that the scores are made of; where a regime is `plain`."""
        raise NotImplementedError

    def sure(self, hidden: Tensor) -> Confidence:
        """Of a pass's states [R, width]: the best token of each row and how sure it is, on the CPU, by one transfer."""
        return self.transformer.confidence(hidden, self._never).on_cpu()

    def rescored(self, request: Request, canvas: Canvas) -> Tensor:
        """The committed positions whose tokens a denoising pass scores as well as the open ones: [B] bool."""
        return ~canvas.open

    def doubts(self, request: Request, tokens: list[int], head: Corrector) -> Tensor | None:
        """How likely each of the tokens behind the pending ones is wrong, [n]; None where no causal pass reads them."""
        return None

    @abstractmethod
    def settle(self, request: Request, canvas: Canvas) -> None:
        """The canvas is resolved and kept as it is, and decoding goes on behind it."""

    def denoise(self, request: Request, canvas: Canvas, enough: Enough) -> Canvas:
        """Resolve the canvas, or as much of it as the policy's passes allow and the hole needs."""
        return denoise(self, request, canvas, enough)

    def verify(
        self, request: Request, draft: list[int], tails: Tails = (), others: Sequence[list[int]] = ()
    ) -> list[int]:
        """One causal pass that writes KV and scores the draft: what it accepts, and its own next token.

        How much that is the policy says (see `accepted`). With `tails` the pass drafts as well (see `Tails`).
        With `others`, drafts beside the first one (which alone has tails), the longest way through all of them is
        taken that the pass would have written itself. What is taken of them stays pending: its KV lies elsewhere.
        Leaves `hidden` and `ahead` in the request.
        Source: greedy speculative verification (Stern et al. 2018; Leviathan et al. 2023).
        """
        tree, session = DraftTree(request.pending, draft, others), request.session
        taps = None if request.doubter is None else request.doubter.taps()
        hidden = self.forward(request, tree.widened(self.reading(request, draft, tails)), taps)
        masks = [len(tree) + row for row in masked_rows(tails)]
        # All in one: the head's weights are many.
        scored = picked_rows(hidden, [*range(tree.root, len(tree)), *masks])
        take = self._take_best if _greedy(request) else self._take_scored
        way, written, drafted = take(request, tree, draft, hidden, scored)
        kept = sum(row < tree.trunk for row in way)
        session.keep(tree.tokens[: tree.root + kept])
        request.pending = written[kept - 1 :]
        request.hidden = picked_rows(hidden, [*range(tree.root), *way])
        request.ahead = drafted[sum(tails[: kept - 1]) : sum(tails[:kept])] if kept == len(way) else []
        return written

    def _take_best(self, request: Request, tree: DraftTree, draft: list[int], hidden: Tensor, scored: Tensor) -> Taken:
        """As `_take_scored` where a row's best tokens decide: no scores of the whole vocabulary are made."""
        best = self.best(scored, 1 if request.rivals is None else OTHERS + 1)
        own = [tokens[0] for tokens in best.tokens]
        way = tree.walk(own)
        rows = [row - tree.root for row in way]
        request.sureness += [max(best.likely[row][0], math.log(LEAST)) for row in rows]
        if request.rivals is not None:
            request.rivals.hear(Best([best.tokens[row] for row in rows], [best.likely[row] for row in rows]))
        return Taken(way, [own[row] for row in rows], own[len(tree) - tree.root :])

    def _take_scored(
        self, request: Request, tree: DraftTree, draft: list[int], hidden: Tensor, scored: Tensor
    ) -> Taken:
        """What the pass takes of the tree, from all scores of the tree's rows from the root on and of the masks."""
        scores, count = self.scores(scored), len(tree) - tree.root
        masks, said, ratio = scores[count:], scores[:count], request.policy.acceptance
        scores = self._penalised(request, tree, said)
        chosen, probability = self._chosen(request, tree, hidden, scores)
        also = (masks.argmax(-1),) if request.rivals is None else (masks.argmax(-1), *Best.among(scores, OTHERS + 1))
        told, (drafted, *best) = heard(draft, chosen, probability.clamp_min(LEAST), scores, ratio, also)
        way = tree.walk(told.own)  # own[i] follows row root + i
        if ratio < 1.0:
            way = [*range(tree.root, tree.root + 1 + accepted(draft, told))]
        rows = [row - tree.root for row in way]
        written = [*(tree.tokens[row] for row in way[1:]), told.own[rows[-1]]]
        if ratio < 1.0:
            request.sureness += told.log_probability(written)
        else:
            request.sureness += [told.likely[row] for row in rows]
        if request.rivals is not None:
            request.rivals.hear(Best(*(one[rows].tolist() for one in best)))
        if request.doubter is not None:  # the head knows no penalties
            request.doubter.read(way, picked_rows(said, rows), written)
        if request.contrast is not None:
            request.contrast.keep(way, tree.root)
        return Taken(way, written, drafted.tolist())

    def _penalised(self, request: Request, tree: DraftTree, scores: Tensor) -> Tensor:
        """Scores [n, vocab] of the tree's rows from the root on, less for what is written before each row's place."""
        if request.policy.repetition == 1.0:
            return scores
        rows = range(tree.root, len(tree))
        return repeated(scores, [[*request.written, *tree.behind_root(row)] for row in rows], request.policy.repetition)

    def _chosen(self, request: Request, tree: DraftTree, hidden: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The pass's own token behind each row of the tree from the root on, and its probability: [n] each."""
        first = len(request.written) - tree.root
        seeds = request.seeds(first + depth for depth in tree.depths[tree.root :])
        chosen, probability = choose(scores, request.temperature, seeds)
        if request.policy.contrast == 0.0 or request.temperature > 0:  # what is drawn varies by itself
            return chosen, probability
        if request.contrast is None:
            request.contrast = Contrast()
        chosen = request.contrast.choose(self, request, tree, hidden, scores)
        return chosen, scores.softmax(-1).gather(-1, chosen[:, None])[:, 0]

    def reading(self, request: Request, draft: list[int], tails: Tails) -> Pass:
        """The pass that verifies `draft`, its rows first; a regime that drafts in it puts the tails behind."""
        assert not tails, "this regime drafts in passes of their own"
        return Pass.causal([*request.pending, *draft], request.session.cache.length, self.transformer.device)

    def forward(self, request: Request, step: Pass, taps: Taps | None = None) -> Tensor:
        """One counted pass behind the session's valid entries; hidden states [T, width]."""
        request.forwards += 1
        with shortage_said(len(step.tokens)):
            if taps is None:
                return self.transformer.forward(step, request.session.cache)
            return self.transformer.forward(step, request.session.cache, taps)

    def scores(self, hidden: Tensor) -> Tensor:
        """Logits [R, vocab] float32 with the mask token and the prompt's own marks out of reach."""
        with shortage_said(len(hidden)):
            return self.transformer.logits(hidden).index_fill_(-1, self._never, -torch.inf)

    def best(self, hidden: Tensor, count: int = 1) -> Best:
        """The best tokens behind rows [R, width] and log p of each, of what `scores` gives: [R, count]."""
        with shortage_said(len(hidden)):
            return self.transformer.best(hidden, self._never, count)

    def read_causally(self, request: Request, tokens: list[int], cancelled: Callable[[], bool]) -> PromptCounts:
        """Read all of `tokens` but the last one, reusing the longest common prefix of what the session holds.

        Leaves the state that the first draft starts from in `request.hidden`, where anything was read.
        """
        session = request.session
        kept = session.cut_to(tokens[:-1])
        session.cache.reserve(len(tokens) - kept + min(request.room, GROWTH))  # once: fresh memory is costly
        request.hidden = None

        def forward(chunk: list[int], start: int) -> None:
            hidden = self.transformer.forward(Pass.causal(chunk, start, self.transformer.device), session.cache)
            request.hidden = hidden[-1:].clone() if start + len(chunk) == len(tokens) - 1 else None

        return session.extend(tokens[kept:-1], forward, cancelled)


def _greedy(request: Request) -> bool:
    """Whether a row's best tokens are all that a verifying pass has to know."""
    policy = request.policy
    plain = policy.acceptance == policy.repetition == 1.0 and policy.contrast == 0.0
    return plain and request.temperature == 0 and request.doubter is None


def places(canvas: Canvas, wanted: Tensor | None) -> Tensor:
    """The positions that a pass predicts, in order: the `wanted` ([B] bool), by default the open ones."""
    return (canvas.open if wanted is None else wanted).nonzero()[:, 0]


def masked_rows(tails: Tails) -> list[int]:
    """The rows of the tails' masks, among the tails' rows: each tail starts with a known token's copy."""
    rows: list[int] = []
    at = 0
    for masks in tails:
        rows += range(at + 1, at + 1 + masks)
        at += masks + 1 if masks else 0
    return rows
