"""Denoising a canvas of masks: commit what is sure, pass by pass. Knows a reader and a policy; judges nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from remask.engine.decode.canvas import Canvas, commit_confident, first_window, resize
from remask.engine.decode.request import Request
from remask.engine.decode.sample import choose

if TYPE_CHECKING:
    from remask.engine.decode.regimes.base import Reader


Enough = Callable[[list[int]], bool]
"""Whether the tokens committed so far without a gap end the hole, whatever the masks behind them become."""


def denoise(reader: Reader, request: Request, canvas: Canvas, enough: Enough) -> Canvas:
    """Commit confident predictions until the canvas is resolved or its start is enough.

    Also ends when the passes, the time or the request do. Where the passes run out, a verified
    draft ends at the first open position (verifying goes on from there anyway); an unverified one takes
    the best predictions for what is open.
    """
    policy, spec = request.policy, reader.spec
    for number in range(policy.passes):
        if canvas.resolved or request.budget.spent(len(request.written)) is not None:
            break
        if number and enough(canvas.leading_run()):
            break
        last = not policy.verifies and number + 1 >= policy.passes
        step(reader, request, canvas, policy.threshold, everything=last)
        if spec.expand_id >= 0:
            dropped = {spec.delete_id, spec.expand_id} if last else {spec.delete_id}
            canvas = resize(canvas, spec.expand_id, dropped)
    return canvas


def step(reader: Reader, request: Request, canvas: Canvas, threshold: float, *, everything: bool = False) -> None:
    """One denoising pass: predict the open positions, commit those that are sure, at least one; or all of them."""
    # What is verified afterwards is drafted greedily: the draw is the verifying pass's.
    temperature = 0.0 if request.policy.verifies else request.temperature
    scores = reader.predict(request, canvas)  # [R, vocab]
    places = (canvas.open.nonzero()[:, 0] + len(request.written)).tolist()
    seeds = request.seeds(places, draw=request.forwards)
    chosen, sure = choose(scores, temperature, seeds)  # [R] each
    predicted, probability = canvas.tokens.clone(), canvas.confidence.clone()
    predicted[canvas.open], probability[canvas.open] = chosen.cpu(), sure.cpu()
    window = first_window(canvas.open, reader.spec.sub_block, start=len(request.pending))
    chosen_now = canvas.open.clone() if everything else commit_confident(probability, window, threshold)
    canvas.commit(predicted, probability, chosen_now)
