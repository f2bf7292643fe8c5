"""Causal context, bidirectional canvas, logits shifted by one: the default model's regime."""

from __future__ import annotations

from torch import Tensor

from remask.engine.decode.canvas import Canvas
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.request import Request
from remask.engine.models.transformer import Pass


class CausalReader(Reader):
    """Every pass starts at the newest known token, whose row predicts the canvas's first position."""

    def predict(self, request: Request, canvas: Canvas) -> Tensor:
        """The row of position i predicts token i + 1, so the canvas's last position is not read."""
        read = [*request.pending, *canvas.filled()[:-1]]
        step = Pass.canvas(read, request.session.cache.length, self.transformer.device)
        return self.scores(self.forward(request, step)[canvas.open.nonzero()[:, 0]])

    def settle(self, request: Request, canvas: Canvas) -> None:
        """A causal pass that only writes KV."""
        tokens = canvas.filled()
        read = [*request.pending, *tokens[:-1]]
        self.forward(request, Pass.causal(read, request.session.cache.length, self.transformer.device))
        request.session.keep(read)
        request.pending = tokens[-1:]
