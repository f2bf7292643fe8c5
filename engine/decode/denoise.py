"""Denoising a canvas of masks: commit what is sure, pass by pass. Knows a reader and a policy; judges nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from remask.engine.decode.canvas import Canvas, commit_confident, first_window, resize
from remask.engine.decode.policy import Verify
from remask.engine.decode.request import Request
from remask.engine.decode.sample import choose

if TYPE_CHECKING:
    from remask.engine.decode.regimes.base import Reader


Enough = Callable[[list[int]], bool]
"""Whether the tokens committed so far without a gap end the hole, whatever the masks behind them become."""


def denoise(reader: Reader, request: Request, canvas: Canvas, enough: Enough) -> Canvas:
    """Commit confident predictions until the canvas is resolved or its start is enough.

    Also ends when the passes run out or the request is cancelled. Where the passes run out, a verified
    draft ends at the first open position (verifying goes on from there anyway); an unverified one takes
    the best predictions for what is open.
    """
    policy, spec = request.policy, reader.spec
    for number in range(policy.passes):
        if canvas.resolved or request.budget.cancelled() or (number and enough(canvas.leading_run())):
            break
        last = policy.verify is Verify.OFF and number + 1 >= policy.passes
        step(reader, request, canvas, 0.0 if last else policy.threshold)
        if spec.expand_id >= 0:
            canvas = resize(canvas, -1 if last else spec.expand_id, spec.delete_id)
    return canvas


def step(reader: Reader, request: Request, canvas: Canvas, threshold: float) -> None:
    """One denoising pass: predict the open positions, commit those that are sure, at least one."""
    # What is verified afterwards is drafted greedily: the draw is the verifying pass's.
    temperature = 0.0 if request.policy.verify is Verify.EXACT else request.temperature
    chosen, sure = choose(reader.predict(request, canvas), temperature, reader.generator(request))  # [R] each
    predicted, probability = canvas.tokens.clone(), canvas.confidence.clone()
    predicted[canvas.open], probability[canvas.open] = chosen.cpu(), sure.cpu()
    window = first_window(canvas.open, reader.spec.sub_block if threshold else 0)
    canvas.commit(predicted, probability, commit_confident(probability, window, threshold))
