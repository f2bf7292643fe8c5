"""What all readers share: forward passes that are counted, and scores with the marks out of reach.

A reader holds no state of a request: that lies in the `Request` and its session.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from remask.contract.messages import PromptCounts
from remask.engine.decode.accept import accepted, log_probability
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.denoise import Enough, denoise
from remask.engine.decode.request import Request
from remask.engine.decode.sample import choose
from remask.engine.judge.corrector import Corrector
from remask.engine.models.model import Model
from remask.engine.models.transformer import Pass, Taps
from remask.engine.prompt import Prompt
from remask.engine.session import Session

LEAST = 1e-9  # a probability whose logarithm is still finite

Branches = Sequence[int]
"""What a verifying pass drafts: how many masks it reads behind the first j draft tokens, for each j from 0 on.

Acceptance ends at one place j, and what was read for that place is the next draft; the other branches are waste.
Source: TiDAR (Liu et al. 2025).
"""


class Reader(ABC):
    """How one regime reads. `one_canvas`: the hole is one canvas, and full when that is resolved."""

    one_canvas = False

    def __init__(self, model: Model) -> None:
        self.spec = model.spec
        self.transformer = model.transformer
        self._never = torch.tensor(model.spec.never, dtype=torch.int64, device=self.transformer.device)

    def prepare(self, request: Request, prompt: Prompt, cancelled: Callable[[], bool]) -> PromptCounts:
        """Read what the session lacks of `prompt`; leaves known tokens that it does not hold in `request.pending`.

        Unless a regime says otherwise, that is the newest token, which the first pass starts with.
        """
        request.pending = prompt.tokens[-1:]
        return self.read_causally(request.session, prompt.tokens, cancelled)

    def canvas(self, request: Request, size: int) -> Canvas:
        """A fresh canvas of about `size` positions behind the pending tokens."""
        return Canvas(size, self.spec.mask_id)

    @abstractmethod
    def predict(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """One denoising pass: scores of the `wanted` positions ([B] bool, by default the open ones) in order.

        [R, vocab] float32. Committed positions are wanted only where `rescored` says that they can be scored.
        """

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

    def verify(self, request: Request, draft: list[int], branches: Branches = ()) -> list[int]:
        """One causal pass that writes KV and scores the draft: what it accepts, and its own next token.

        How much that is the policy says (see `accepted`). With `branches` the pass drafts as well (see `Branches`).
        Leaves `hidden` and `ahead` in the request.
        Source: greedy speculative verification (Stern et al. 2018; Leviathan et al. 2023).
        """
        read, session, first = [*request.pending, *draft], request.session, len(request.pending) - 1
        hidden = self.forward(request, self.reading(request, draft, branches))
        masks = [len(read) + row for row in masked_rows(branches)]
        scores = self.scores(hidden[[*range(first, len(read)), *masks]])  # all in one: the head's weights are many
        drafted = scores[len(read) - first :].argmax(-1).tolist()
        scores = scores[: len(read) - first]
        seeds = request.seeds(range(len(request.written), len(request.written) + len(scores)))
        chosen, probability = choose(scores, request.temperature, seeds)
        own = chosen.tolist()  # own[i] follows draft[i - 1]
        count = accepted(draft, own, scores, request.policy.acceptance)
        written = [*draft[:count], own[count]]
        request.sureness += log_probability(written, own, scores, probability.clamp_min(LEAST))
        known = first + 1 + count
        session.keep(read[:known])
        request.pending = [own[count]]
        request.hidden = hidden[:known]
        request.ahead = drafted[sum(branches[:count]) : sum(branches[: count + 1])]
        return written

    def reading(self, request: Request, draft: list[int], branches: Branches) -> Pass:
        """The pass that verifies `draft`, its rows first; a regime that drafts in it puts the branches behind."""
        assert not branches, "this regime drafts in passes of their own"
        return Pass.causal([*request.pending, *draft], request.session.cache.length, self.transformer.device)

    def forward(self, request: Request, step: Pass, taps: Taps | None = None) -> Tensor:
        """One counted pass behind the session's valid entries; hidden states [T, width]."""
        request.forwards += 1
        if taps is None:
            return self.transformer.forward(step, request.session.cache)
        return self.transformer.forward(step, request.session.cache, taps)

    def scores(self, hidden: Tensor) -> Tensor:
        """Logits [R, vocab] float32 with the mask token and the prompt's own marks out of reach."""
        return self.transformer.logits(hidden).index_fill_(-1, self._never, -torch.inf)

    def read_causally(self, session: Session, tokens: list[int], cancelled: Callable[[], bool]) -> PromptCounts:
        """Read all of `tokens` but the last one, reusing the longest common prefix of what the session holds."""
        kept = session.cut_to(tokens[:-1])
        return session.extend(
            tokens[kept:-1],
            lambda chunk, start: self.transformer.forward(
                Pass.causal(chunk, start, self.transformer.device), session.cache
            ),
            cancelled,
        )


def places(canvas: Canvas, wanted: Tensor | None) -> Tensor:
    """The positions that a pass predicts, in order: the `wanted` ([B] bool), by default the open ones."""
    return (canvas.open if wanted is None else wanted).nonzero()[:, 0]


def masked_rows(branches: Branches) -> list[int]:
    """The rows of the branches' masks, among the branches' rows: each branch starts with a known token's copy."""
    rows: list[int] = []
    at = 0
    for masks in branches:
        rows += range(at + 1, at + 1 + masks)
        at += masks + 1 if masks else 0
    return rows
