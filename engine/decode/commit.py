"""Which masked positions a denoising pass commits: one pure function a rule, and the schedules beside them.

Rules take [B] tensors over the canvas and return [B] bool; every one of them commits at least one position, and
open ones only. They know no model and no text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from remask.engine.decode.policy import Commit, Policy, Schedule


@dataclass(frozen=True, slots=True)
class Look:
    """What a pass says of a canvas: the chosen tokens' probability and the entropy (nats) of each position [B].

    open: [B] bool, those that may be committed; both are 0 elsewhere. step of steps counts from 0.
    """

    probability: Tensor
    entropy: Tensor
    open: Tensor
    step: int
    steps: int


def chosen(look: Look, policy: Policy) -> Tensor:
    """The positions that the policy's rule commits: [B] bool."""
    if policy.commit is Commit.ENTROPY:
        return commit_entropy(look.entropy, look.open, policy.bound)
    if policy.commit is Commit.HIERARCHICAL:
        return commit_hierarchical(look.probability, look.open, policy.threshold, policy.low)
    if policy.commit is Commit.LEFT:
        return commit_left(look.probability, look.open, policy.threshold, policy.penalty, policy.window)
    if policy.commit is Commit.SCHEDULE:
        share = masked_share(policy.schedule, (look.step + 1) / look.steps)
        return commit_best(look.probability, look.open, int(look.open.sum()) - int(share * len(look.open)))
    return commit_confident(look.probability, look.open, policy.threshold)  # credit changes the scores, not the rule


def commit_confident(probability: Tensor, open_: Tensor, threshold: float) -> Tensor:
    """Those with p >= threshold, and the best one in any case; equal probabilities go to the leftmost.

    Source: confidence-aware parallel decoding of Fast-dLLM (Wu et al. 2025), threshold rule.
    """
    sure = open_ & (probability >= threshold)
    sure[torch.where(open_, probability, -torch.inf).argmax()] = True
    return sure & open_


def commit_best(probability: Tensor, open_: Tensor, count: int) -> Tensor:
    """The `count` of highest p, at least one. Source: MaskGIT (Chang et al. 2022)."""
    count = max(1, min(count, int(open_.sum())))
    best = torch.where(open_, probability, -torch.inf).sort(descending=True, stable=True).indices[:count]
    return torch.zeros_like(open_).index_fill(0, best, True) & open_


def commit_entropy(entropy: Tensor, open_: Tensor, bound: float) -> Tensor:
    """Those of lowest entropy H while sum(H) - max(H) <= bound.

    The sum over a set less its largest member bounds what the positions may know of each other.
    Source: entropy-bounded sampling (arXiv 2505.24857).
    """
    places = open_.nonzero()[:, 0]
    ordered, order = entropy[places].sort(stable=True)
    within = places[order[ordered.cumsum(0) - ordered <= bound]]
    return torch.zeros_like(open_).index_fill(0, within, True)


def commit_hierarchical(probability: Tensor, open_: Tensor, threshold: float, low: float) -> Tensor:
    """Those with p >= threshold, and of every unbroken stretch of masks the best one if its p > low.

    Each pass splits every stretch, so a canvas of n masks takes about log2(n) passes. Source: the hierarchical
    decoder of dInfer (Ant Group 2025).
    """
    sure = commit_confident(probability, open_, threshold)
    for start, end in _stretches(open_.tolist()):
        best = start + int(probability[start:end].argmax())
        if probability[best] > low:
            sure[best] = True
    return sure


def commit_left(probability: Tensor, open_: Tensor, threshold: float, penalty: float, window: int) -> Tensor:
    """Those with p - penalty * d >= threshold, d positions behind the first open one, d < window (0: no bound).

    A gap-free start is what can be shown and stopped at. Source: WeDLM's position penalty (Tencent 2025).
    """
    distance = torch.arange(len(open_), device=open_.device) - int(open_.int().argmax())
    near = open_ & (distance < window) if window else open_
    return commit_confident(probability - penalty * distance, near, threshold)


def credited(scores: Tensor, credit: Tensor) -> tuple[Tensor, Tensor]:
    """Scores [R, vocab] raised by what earlier passes favoured, and the new credit [R, vocab] (0 before the first).

    credit = 0.8 * credit, plus p^0.2 for the best token; scores + 0.7 * log(credit + 1). A token that
    stays the best passes the threshold sooner. Source: CreditDecoding (arXiv 2510.06133), with its constants.
    """
    probability, best = scores.softmax(-1).max(-1, keepdim=True)
    credit = (0.8 * credit).scatter_add(-1, best, probability**0.2)
    return scores + 0.7 * (credit + 1).log(), credit


def masked_share(schedule: Schedule, progress: float) -> float:
    """The share of a canvas that is still masked at a progress of 0 to 1: 1 - r, cos(pi r / 2) or 1 - r^2.

    Source: MaskGIT (Chang et al. 2022); concave ones commit few positions at first, where little is known.
    """
    if progress >= 1.0:
        return 0.0
    if schedule is Schedule.COSINE:
        return math.cos(math.pi * progress / 2)
    return 1.0 - (progress if schedule is Schedule.LINEAR else progress**2)


def default_steps(length: int) -> int:
    """Passes for a canvas where none are named: the square root of its length, rounded up."""
    return max(1, math.isqrt(max(0, length - 1)) + 1)


def falling(temperature: float, step: int, steps: int) -> float:
    """The temperature of pass `step` of `steps`: T * (1 - step / steps), late choices being sure ones.

    Source: linear annealing, as of MaskGIT's choice temperature (Chang et al. 2022).
    """
    return temperature * (1.0 - step / steps)


class Stability:
    """Whether the best canvas did not change for `passes` passes and the predictions are sure. Of one canvas.

    Source: DiffusionGemma's published generation settings.
    """

    def __init__(self, passes: int, calm: float) -> None:
        self._passes = passes
        self._calm = calm
        self._before: Tensor | None = None
        self._unchanged = 0

    def reached(self, best: Tensor, mean_entropy: float) -> bool:
        """Take a pass's best canvas [B] and mean entropy (nats) into account."""
        same = self._before is not None and torch.equal(best, self._before)
        self._unchanged = self._unchanged + 1 if same else 0
        self._before = best
        return self._unchanged >= self._passes and mean_entropy < self._calm


def _stretches(open_: list[bool]) -> list[tuple[int, int]]:
    """Start and end of each unbroken run of True."""
    edges = [i for i, (a, b) in enumerate(zip([False, *open_], [*open_, False], strict=True)) if a != b]
    return list(zip(edges[::2], edges[1::2], strict=True))
