"""Causal context, bidirectional canvas, logits shifted by one: the default model's regime."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from remask.engine.decode.canvas import Canvas
from remask.engine.decode.regimes.base import Reader, Tails, places
from remask.engine.decode.request import Request
from remask.engine.judge.corrector import Corrector, signs_of
from remask.engine.models.passes import Pass, Taps
from remask.engine.models.transfer import onto, picked_rows, sent


class CausalReader(Reader):
    """Every pass starts at the newest known token, whose row predicts the canvas's first position."""

    def states(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """The row of position i predicts token i + 1, so the canvas's last position is not read."""
        read = [*request.pending, *canvas.filled()[:-1]]
        step = Pass.canvas(read, request.session.cache.length, self.transformer.device)
        rows = places(canvas, wanted) + len(request.pending) - 1
        return picked_rows(self.forward(request, step), rows.tolist())

    def settle(self, request: Request, canvas: Canvas) -> None:
        """A causal pass that only writes KV, unless one has just judged the canvas."""
        tokens = canvas.filled()
        read = [*request.pending, *tokens[:-1]]
        if not canvas.reread:
            self.forward(request, Pass.causal(read, request.session.cache.length, self.transformer.device))
        request.session.keep(read)
        request.pending = tokens[-1:]

    def doubts(self, request: Request, tokens: list[int], head: Corrector) -> Tensor:
        """The causal pass that writes KV, one row longer: it also says how likely each token is wrong."""
        taps, first = Taps(head.taps), len(request.pending)
        start, device = request.session.cache.length, self.transformer.device
        hidden = self.forward(request, Pass.causal([*request.pending, *tokens], start, device), taps)
        signs = signs_of(self.scores(hidden[first - 1 : -1]), sent(tokens, device))
        return head.wrong(taps.stacked()[first:], signs).cpu()

    def reading(self, request: Request, draft: list[int], tails: Tails) -> Pass:
        """The draft read causally, and behind it a canvas for each place where its acceptance may end.

        The canvas of place j is as in training: a copy of the j-th draft token (the newest known one where j is 0),
        then masks; all see each other, the context, and the tokens before that one.
        """
        start, device = request.session.cache.length, self.transformer.device
        if not any(tails):
            return Pass.causal([*request.pending, *draft], start, device)
        known, root = [*request.pending, *draft], len(request.pending) - 1
        read, places = list(known), list(range(len(known)))
        for j, masks in enumerate(tails):
            if masks:
                read += [known[root + j], *[self.spec.mask_id] * masks]
                places += range(root + j, root + j + masks + 1)
        return Pass(
            sent(read, device),
            sent(places, device) + start,
            onto(tailed_mask(len(known), tuple(tails), root), device),
        )


@lru_cache(maxsize=256)
def tailed_mask(known: int, tails: tuple[int, ...], root: int = 0) -> Tensor:
    """Who sees whom in `CausalReader.reading`: [T, T] bool, `known` causal rows first, then the tails' rows.

    root: the row of the newest known token, which the first tail begins with a copy of.
    """
    rows = known + sum(masks + 1 for masks in tails if masks)
    mask = torch.zeros(rows, rows, dtype=torch.bool)
    mask[:known, :known] = torch.ones(known, known, dtype=torch.bool).tril()
    at = known
    for j, masks in enumerate(tails):
        if masks:
            mask[at : at + masks + 1, : root + j] = True
            mask[at : at + masks + 1, at : at + masks + 1] = True
            at += masks + 1
    return mask
