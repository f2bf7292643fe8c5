"""Denoising a canvas of masks: commit what is sure, mask again what a judge blames, pass by pass.

Knows a reader, a policy and whether the request has a judge; judges nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from remask.engine.decode.canvas import Canvas, first_window, resize
from remask.engine.decode.commit import Look, Stability, chosen, credited, default_steps, falling
from remask.engine.decode.policy import Commit, Policy
from remask.engine.decode.remask import MOST_EXTRA
from remask.engine.decode.request import Request
from remask.engine.decode.sample import choose, entropy

if TYPE_CHECKING:
    from remask.engine.decode.regimes.base import Reader


Enough = Callable[[list[int]], bool]
"""Whether the tokens committed so far without a gap end the hole, whatever the masks behind them become."""


def denoise(reader: Reader, request: Request, canvas: Canvas, enough: Enough) -> Canvas:
    """Commit predictions by the policy's rule until the canvas is resolved or its start is enough.

    Also ends when the passes, the time or the request do. Where the passes run out, a verified
    draft ends at the first open position (verifying goes on from there anyway); an unverified one takes
    the best predictions for what is open.
    """
    policy, spec = request.policy, reader.spec
    progress = Progress(policy, policy.passes or default_steps(len(canvas)))
    if request.remasker is not None:
        request.remasker.begin()
    while progress.step < progress.steps:
        if canvas.resolved or request.budget.spent(len(request.written)) is not None:
            break
        if progress.step and enough(canvas.leading_run()):
            break
        last = not policy.verifies and progress.step + 1 >= progress.steps
        step(reader, request, canvas, progress, everything=last)
        if spec.expand_id >= 0:
            dropped = {spec.delete_id, spec.expand_id} if last else {spec.delete_id}
            before, canvas = canvas, resize(canvas, spec.expand_id, dropped)
            if request.remasker is not None and before.filled() != canvas.filled():
                request.remasker.begin()  # positions are other ones now
    return canvas


class Progress:
    """How far one canvas is: pass `step` of `steps`, and what its rules remember of the passes before."""

    def __init__(self, policy: Policy, steps: int) -> None:
        self.step = 0
        self.steps = self.first_steps = steps
        self.stability = Stability(policy.stable, policy.calm) if policy.stable else None
        self.credit: Tensor | None = None  # [B, vocab] float32

    def credited(self, scores: Tensor, open_: Tensor) -> Tensor:
        """Scores [R, vocab] of the open positions ([B] bool), raised by the credit of earlier passes."""
        if self.credit is None or len(self.credit) != len(open_):  # a canvas that changed its length starts anew
            self.credit = scores.new_zeros(len(open_), scores.shape[-1])
        where = open_.to(scores.device)
        raised, self.credit[where] = credited(scores, self.credit[where])
        return raised


def step(
    reader: Reader, request: Request, canvas: Canvas, progress: Progress | None = None, *, everything: bool = False
) -> None:
    """One denoising pass: predict the open positions, commit those that are sure, at least one; or all of them."""
    policy = request.policy
    progress = progress or Progress(policy, 1)
    scores = reader.predict(request, canvas)  # [R, vocab]
    if policy.commit is Commit.CREDIT:
        scores = progress.credited(scores, canvas.open)
    # What is verified afterwards is drafted greedily: the draw is the verifying pass's.
    drawn = request.temperature > 0 and not policy.verifies
    temperature = falling(policy.temperature, progress.step, progress.steps) if drawn else 0.0
    places = (canvas.open.nonzero()[:, 0] + len(request.written)).tolist()
    if request.remasker is not None and request.remasker.forbidden:
        scores = _without(scores, canvas, request.remasker.forbidden)
    tokens, sure = choose(scores, temperature, request.seeds(places, draw=request.forwards))  # [R] each
    predicted, probability = canvas.tokens.clone(), canvas.confidence.clone()
    predicted[canvas.open], probability[canvas.open] = tokens.cpu(), sure.cpu()
    spread = torch.zeros(len(canvas))
    if policy.commit is Commit.ENTROPY or progress.stability:
        spread[canvas.open] = entropy(scores).cpu()
    window = first_window(canvas.open, reader.spec.sub_block, start=len(request.pending))
    look = Look(probability, spread, window, progress.step, progress.steps)
    calm = progress.stability and progress.stability.reached(predicted, float(spread[canvas.open].mean()))
    committed = canvas.open.clone() if everything or calm else chosen(look, policy)
    canvas.commit(predicted, probability, committed)
    if request.trace is not None:
        request.trace.denoised(len(request.written), canvas, predicted, probability, committed)
    progress.step += 1
    limit = progress.first_steps + MOST_EXTRA * len(canvas)
    if request.remasker is not None and progress.step < limit and _remask(request, canvas, predicted):
        progress.steps = min(progress.steps + 1, limit)  # the last pass of all is not judged: it ends the canvas


def _remask(request: Request, canvas: Canvas, predicted: Tensor) -> bool:
    """Take back what the judge blames; whether there was anything."""
    assert request.remasker is not None
    found = request.remasker.find(request.written, predicted.tolist(), canvas)
    if found is None or any(place < canvas.settled for place in found.remask):  # what is read stays
        return False
    if request.trace is not None and found.remask:
        request.trace.remasked(len(request.written), canvas, found.remask, found.judge, found.why)
    canvas.remask(found.remask)
    return True


def _without(scores: Tensor, canvas: Canvas, forbidden: set[tuple[int, int]]) -> Tensor:
    """Scores [R, vocab] of the open positions with the forbidden (position, token) pairs out of reach."""
    row = {place: number for number, place in enumerate(canvas.open.nonzero()[:, 0].tolist())}
    scores = scores.clone()
    for place, token in forbidden:
        if place in row:
            scores[row[place], token] = -torch.inf
    return scores
