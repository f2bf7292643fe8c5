"""Denoising a canvas of masks: commit what is sure, mask again what a judge blames, pass by pass.

Knows a reader, a policy and whether the request has a judge; judges nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from remask.engine.control.penalties import repeated
from remask.engine.decode.canvas import Canvas, first_window, resize
from remask.engine.decode.commit import Look, Stability, chosen, credited, default_steps, falling
from remask.engine.decode.policy import Commit, Policy
from remask.engine.decode.remask import MOST_EXTRA, Finding, Removal
from remask.engine.decode.request import Request
from remask.engine.decode.sample import choose, entropy
from remask.engine.models.passes import Confidence

if TYPE_CHECKING:
    from remask.engine.decode.regimes.base import Reader


Enough = Callable[[list[int]], bool]
"""Whether the tokens committed so far without a gap end the hole, whatever the masks behind them become."""


def denoise(reader: Reader, request: Request, canvas: Canvas, enough: Enough) -> Canvas:
    """Commit predictions by the policy's rule until the canvas is resolved or its start is enough.

    Also ends when the passes, the time or the request do. Where the passes run out, a verified
    draft ends at the first open position (verifying goes on from there anyway); an unverified one takes
    the best predictions for what is open. What a canvas starts with that is no mask is looked at first, if it is not
    verified afterwards.
    """
    if request.remasker is not None:
        request.remasker.begin()
    begun = not request.policy.verifies and not bool(canvas.open.all())
    if begun and bool(reader.rescored(request, canvas).any()):
        review(reader, request, canvas)
    return go_on(reader, request, canvas, enough)


def go_on(reader: Reader, request: Request, canvas: Canvas, enough: Enough) -> Canvas:
    """`denoise` from where the canvas is: what stands in it counts as committed by passes before."""
    policy = request.policy
    progress = Progress(policy, policy.passes or default_steps(len(canvas)), len(canvas))
    while True:
        canvas = _resolved(reader, request, canvas, enough, progress)
        goes_on = _ended_early(request, canvas, enough, progress)
        if not goes_on and not _corrected(reader, request, canvas, enough, progress):
            return canvas


def _resolved(reader: Reader, request: Request, canvas: Canvas, enough: Enough, progress: Progress) -> Canvas:
    """Passes over the canvas until nothing is open, its start is enough, or there are no more."""
    policy, spec = request.policy, reader.spec
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
    """How far one canvas is: pass `step` of `steps`, `limit` at most, and what its rules remember of the passes before.

    Every removal adds a pass while there are any to add.
    """

    def __init__(self, policy: Policy, steps: int, length: int) -> None:
        self.step = 0
        self.steps = steps
        self.limit = steps + MOST_EXTRA * length
        self.stability = Stability(policy.stable, policy.calm) if policy.stable else None
        self.credit: Tensor | None = None  # [B, vocab] float32

    def extend(self, passes: int = 1) -> None:
        """So many passes more, for what was taken back."""
        self.steps = min(max(self.steps, self.step) + passes, self.limit)

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
    progress = progress or Progress(policy, 1, len(canvas))
    confidence, now = _looked(reader, request, canvas, progress, everything=everything)
    predicted, probability, spread = canvas.tokens.clone(), canvas.confidence.clone(), torch.zeros(len(canvas))
    for whole, part in zip((predicted, probability, spread), confidence, strict=True):
        whole[canvas.open] = part
    window = first_window(canvas.open, reader.spec.sub_block, start=len(request.pending))
    look = Look(probability, spread, window, progress.step, progress.steps)
    calm = progress.stability and progress.stability.reached(predicted, float(spread[canvas.open].mean()))
    committed = canvas.open.clone() if everything or calm else chosen(look, policy)
    canvas.commit(predicted, probability, committed)
    if request.trace is not None:
        request.trace.denoised(len(request.written), canvas, predicted, probability, committed)
    progress.step += 1
    # The last pass of all is not judged: it ends the canvas.
    if progress.step < progress.limit and _remask(request, canvas, predicted, now):
        progress.extend()


def review(reader: Reader, request: Request, canvas: Canvas) -> None:
    """One pass that says how sure the model is of tokens that a canvas starts with; those it doubts are masked.

    A token that stays has the probability of this pass from now on. The parser judges what is left.
    """
    held = reader.rescored(request, canvas)
    scores = reader.predict(request, canvas, held | canvas.open)
    now, best = _own(scores, held, canvas), canvas.tokens.clone()
    best[canvas.open] = scores.argmax(-1).cpu()[canvas.open[held | canvas.open]]
    canvas.confidence = torch.where(held, now, canvas.confidence)
    lost = (held & (now < request.policy.doubt)).nonzero()[:, 0].tolist()
    if lost:
        why = ", ".join(f"{float(now[place]):.2f}" for place in lost)
        _take_back(request, canvas, Removal(tuple(lost), f"the old text has a probability of {why} here", "confidence"))
    _remask(request, canvas, best, None)


def _looked(
    reader: Reader, request: Request, canvas: Canvas, progress: Progress, *, everything: bool
) -> tuple[Confidence, Tensor | None]:
    """What a pass says of the open positions [R], and what it now says of committed ones (see `_predicted`).

    Guesses that may not be made are exchanged: all of them where `everything` is to be committed. Entropies are 0 where
    nothing asks for them. Where a card needs no scores for that, it makes none, unless the guard objects to a guess.
    """
    policy, remasker = request.policy, request.remasker
    # What is verified afterwards is drafted greedily: the draw is the verifying pass's.
    drawn = request.temperature > 0 and not policy.verifies
    judged = remasker is not None and (bool(remasker.forbidden) or remasker.falling is not None)
    judged |= policy.repetition != 1.0
    guard = remasker.guard if remasker is not None else None
    if not (drawn or judged or policy.commit is Commit.CREDIT) and fuses(reader):
        hidden = reader.states(request, canvas)
        said = reader.sure(hidden)
        if guard is None or not guard.objects(request.written, canvas, said.token.tolist(), everywhere=everything):
            return said, None
        scores, now = reader.scores(hidden), None  # only where a guess has to give way
    else:
        scores, now = _predicted(reader, request, canvas)
    if policy.commit is Commit.CREDIT:
        scores = progress.credited(scores, canvas.open)
    temperature = falling(policy.temperature, progress.step, progress.steps) if drawn else 0.0
    places = (canvas.open.nonzero()[:, 0] + len(request.written)).tolist()
    if remasker is not None and remasker.forbidden:
        scores = _without(scores, canvas, remasker.forbidden)
    scores = _penalised(request, canvas, scores)
    seeds = request.seeds(places, draw=request.forwards)
    tokens, sure = choose(scores, temperature, seeds)  # [R] each
    if remasker is not None and guard is not None:
        wrong = guard.exchange(
            request.written,
            canvas,
            scores,
            (tokens, sure),
            lambda scores, number: choose(scores, temperature, seeds[number : number + 1]),
            everywhere=everything,
        )
        remasker.forbidden.update(wrong)
    wanted = policy.commit is Commit.ENTROPY or progress.stability is not None
    return Confidence(tokens, sure, entropy(scores) if wanted else torch.zeros_like(sure)).on_cpu(), now


def fuses(reader: Reader) -> bool:
    """Whether confidence is made without scores: on a card, where the regime's scores are those of its states."""
    return reader.plain and reader.transformer.device.type == "cuda"


def _predicted(reader: Reader, request: Request, canvas: Canvas) -> tuple[Tensor, Tensor | None]:
    """Scores of the open positions [R, vocab]; where lost confidence is judged, also each committed token's p [B] now.

    That is 1 where the pass does not say, or is not sure enough of another token.
    """
    rule = request.remasker.falling if request.remasker is not None else None
    held = reader.rescored(request, canvas) if rule is not None else None
    if rule is None or held is None or not bool(held.any()):
        return reader.predict(request, canvas), None
    wanted = held | canvas.open
    scores = reader.predict(request, canvas, wanted)
    return scores[canvas.open[wanted].to(scores.device)], _own(scores, held, canvas, rule.surer)


def _penalised(request: Request, canvas: Canvas, scores: Tensor) -> Tensor:
    """Scores [R, vocab] of the open positions, less for tokens that are written or committed before each."""
    if request.policy.repetition == 1.0:
        return scores
    filled, open_ = canvas.filled(), canvas.open.tolist()
    known = [[t for t, o in zip(filled[:place], open_, strict=False) if not o] for place in range(len(filled))]
    earlier = [[*request.written, *known[place]] for place, o in enumerate(open_) if o]
    return repeated(scores, earlier, request.policy.repetition)


def _own(scores: Tensor, held: Tensor, canvas: Canvas, surer: float = 0.0) -> Tensor:
    """The probability [B] of the `held` tokens [B] bool, 1 elsewhere; scores are of the held and the open positions.

    Also 1 where no token has a probability of `surer`.
    """
    likely = scores[held[held | canvas.open].to(scores.device)].softmax(-1)
    own = likely.gather(1, canvas.tokens[held].to(likely.device)[:, None])[:, 0]
    now = torch.ones(len(canvas))
    now[held] = torch.where(likely.amax(-1) >= surer, own, 1.0).cpu()
    return now


def _remask(request: Request, canvas: Canvas, predicted: Tensor, now: Tensor | None) -> bool:
    """Take back what lost confidence and what the judge of texts blames; whether there was anything."""
    remasker, found_any = request.remasker, False
    if remasker is None:
        return False
    if now is not None and (fallen := remasker.find_fallen(now, canvas, len(request.written))) is not None:
        found_any = _take_back(request, canvas, fallen)
    found = remasker.find(request.written, predicted.tolist(), canvas)
    return found_any if found is None else _take_back(request, canvas, found) or found_any


def _corrected(reader: Reader, request: Request, canvas: Canvas, enough: Enough, progress: Progress) -> bool:
    """Take back what the corrector head doubts of the tokens to be written; whether the canvas has to go on."""
    remasker, run = request.remasker, canvas.leading_run()
    if remasker is None or remasker.corrector is None or progress.step >= progress.limit or not run:
        return False
    if request.budget.spent(len(request.written)) is not None:
        return False
    if enough(run):  # what stands behind the hole's end is not written
        run = run[: next(n for n in range(1, len(run) + 1) if enough(run[:n]))]
    wrong = reader.doubts(request, run, remasker.corrector)
    if wrong is None:
        return False
    canvas.reread = len(run) == len(canvas)
    found = remasker.find_doubted(wrong, canvas, len(request.written))
    if found is None or not _take_back(request, canvas, found):
        if request.doubter is not None:
            request.doubter.wrong += wrong.tolist()
        return False
    progress.extend()
    return True


def _ended_early(request: Request, canvas: Canvas, enough: Enough, progress: Progress) -> bool:
    """Take back the hole's end where it is too early, and what stands behind it; whether the canvas has to go on."""
    remasker, run = request.remasker, canvas.leading_run()
    if remasker is None or remasker.guard is None or progress.step >= progress.limit or not run:
        return False
    if request.policy.verifies or request.budget.spent(len(request.written)) is not None or not enough(run):
        return False
    place = next(n for n in range(len(run)) if enough(run[: n + 1]))
    found = remasker.guard.too_early(request.written, canvas, place)
    if found is None or not _take_back(request, canvas, found):
        return False
    remasker.removals += len(found.remask)
    progress.extend(len(found.remask))
    return True


def _take_back(request: Request, canvas: Canvas, found: Finding) -> bool:
    """Mask what was found and tell the trace why; nothing that is read already."""
    if any(place < canvas.settled for place in found.remask):
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
