"""Causal throughout: resolved tokens stand first, masks after them, each with its true position.

So every token that is resolved without a gap has exact KV after the next pass, and no pass is spent on
writing it. Source: WeDLM's topological reordering (Tencent 2025).
"""

from __future__ import annotations

import torch
from torch import Tensor

from remask.engine.decode.canvas import Canvas
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.request import Request
from remask.engine.models.passes import Pass


class StrictCausalReader(Reader):
    """`request.pending` are known tokens whose KV is written by the next pass, the canvas's leading ones included."""

    rescores = False

    def rescored(self, request: Request, canvas: Canvas) -> Tensor:
        """None: a committed token's row sees that token, and what is written stays written."""
        return torch.zeros_like(canvas.open)

    def states(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """Pending, then resolved, then masks; a mask's row predicts the mask's own position."""
        assert wanted is None, "only masks are predicted"
        session = request.session
        tokens, leading = canvas.filled(), canvas.leading_run()
        start = session.cache.length + len(request.pending) - canvas.settled  # the canvas's first position
        unsettled = leading[canvas.settled :]
        known = [*request.pending, *unsettled]
        scattered = [i for i in range(len(leading), len(canvas)) if not canvas.open[i]]
        masked = [i for i in range(len(canvas)) if canvas.open[i]]
        positions = [
            *range(session.cache.length, session.cache.length + len(known)),
            *(start + i for i in (*scattered, *masked)),
        ]
        read = [*known, *(tokens[i] for i in (*scattered, *masked))]
        hidden = self.forward(request, Pass.ordered(read, positions, self.transformer.device))
        if not request.policy.verifies:  # a verifying pass writes KV itself, and only of what it accepts
            session.keep(known)
            request.pending = []
            canvas.settled = len(leading)
        return hidden[len(read) - len(masked) :]

    def settle(self, request: Request, canvas: Canvas) -> None:
        """Nothing to run: what is not written yet is read by the next pass anyway."""
        request.pending = [*request.pending, *canvas.filled()[canvas.settled :]]
