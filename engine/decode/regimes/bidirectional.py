"""Everything sees everything: the regime of Dream, DiffuCoder, DreamOn, Open-dCoder and mdlm checkpoints.

No KV stays valid, so none is kept. The hole is one canvas between prefix and suffix, and its length is the
problem: several lengths are tried and the one whose first pass is surest is taken (CAL, arXiv 2602.00476),
unless the checkpoint can make its canvas longer and shorter itself (DreamOn's expand and delete tokens).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from remask.contract.messages import PromptCounts
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.regimes.base import Reader, places
from remask.engine.decode.request import Request
from remask.engine.models.passes import Pass
from remask.engine.models.transfer import picked_rows
from remask.engine.prompt import Prompt

LENGTHS = (4, 8, 16, 32, 64)  # canvases to try; corpus figures: half of all lines fit 8 tokens, nearly all fit 32


class BidirectionalReader(Reader):
    """`request.pending` is all that stands before the hole, `request.after` all that stands behind it."""

    one_canvas = True
    plain = False

    def prepare(self, request: Request, prompt: Prompt, cancelled: Callable[[], bool]) -> PromptCounts:
        """Nothing can be read ahead; every pass reads everything."""
        request.pending, request.after = prompt.tokens, prompt.after
        request.session.cut_to([])
        return PromptCounts(total=len(prompt.tokens) + len(prompt.after))

    def canvas(self, request: Request, size: int) -> Canvas:
        """The canvas whose masks are predicted with the highest mean probability at first sight."""
        lengths = [n for n in LENGTHS if n <= size] or [size]
        if self.spec.expand_id >= 0:  # it finds its own length
            lengths = lengths[:1]
        if len(lengths) == 1:
            return Canvas(lengths[0], self.spec.mask_id)
        tried: list[tuple[float, Canvas]] = []
        for length in lengths:
            if tried and request.budget.spent(0) is not None:
                break
            canvas = Canvas(length, self.spec.mask_id)
            tried.append((self._sureness(request, canvas), canvas))
        return max(tried, key=lambda pair: pair[0])[1]

    def predict(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """One pass over prefix, canvas and suffix."""
        read = [*request.pending, *canvas.filled(), *request.after]
        hidden = self.forward(request, Pass.canvas(read, 0, self.transformer.device))
        rows = places(canvas, wanted) + len(request.pending) - self.spec.shift
        scores = self.scores(picked_rows(hidden, rows.tolist()))
        if self.spec.expand_id >= 0 and len(canvas) >= request.budget.max_tokens:
            scores[:, self.spec.expand_id] = -torch.inf
        return scores

    def settle(self, request: Request, canvas: Canvas) -> None:
        """The hole is full."""

    def _sureness(self, request: Request, canvas: Canvas) -> float:
        return float(self.predict(request, canvas).softmax(-1).amax(-1).mean())
