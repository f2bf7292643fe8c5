"""Trains the corrector head: gathers drafts of a frozen network, fits the head, draws its lines and measures them.

The network's passes cost nearly everything, so what they give is kept and the head is fitted over it several times.
Knows folders; what is shown on the way is the caller's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import InputError
from remask.engine.judge.corrector import SIGNS, Corrector, part_shapes, score, verdict
from remask.engine.training.batches import Bools
from remask.engine.training.drafts import DRAFTED, Drafts, Kind, Labelled
from remask.engine.training.working_point import (
    Scores,
    average_precision,
    choose,
    precision_recall,
    rank_area,
    strict,
)

FITTING = 0.15  # share of the time that is left for fitting the head
MEASURING = 0.25  # share of the time that held-out drafts may take
MOST_BYTES = 2**30  # of hidden states kept
OF_STATES, OF_STATES_RATE = ("skip.weight", "gate.weight"), 0.1
Progress = Callable[[str, float], None]  # a stage's name, and how much of it is done, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectorPlan:
    """How to train. Ends after `minutes`, or after `steps` batches were gathered, what comes first; 0 is never.

    inner: numbers between the taps and the verdict. epochs over what was gathered. lr falls to 0 with a cosine;
    what reads the many numbers of the states learns at a tenth of it and decays, or it would learn them by heart.
    dropout: share of the states' numbers that are hidden from the head in each step.
    held_out: batches of the validation rows; the lines are drawn on the even ones and measured on the odd ones.
    precision: wanted of the line for drafts. doubted: most of the untouched tokens that the strict line may flag.
    """

    minutes: float = 0.0
    steps: int = 0
    seed: int = 0
    inner: int = 64
    epochs: int = 4
    batch: int = 512
    lr: float = 1e-2
    decay: float = 1.0
    dropout: float = 0.5
    held_out: int = 40
    precision: float = 0.8
    doubted: float = 0.002

    def __post_init__(self) -> None:
        if self.minutes <= 0 and self.steps <= 0:
            raise InputError("Training a head needs an end.", advice="Give --minutes or --steps.")


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Scores of held-out tokens beside what is true of them; `odd`: which half they belong to."""

    scores: Scores
    plain: Scores  # minus the log-probability: what the head has to beat
    wrong: Bools
    kind: npt.NDArray[np.uint8]
    odd: Bools

    def of(self, kinds: tuple[Kind, ...], *, odd: bool) -> Bools:
        """Which tokens are of these kinds and of that half."""
        mask: Bools = np.isin(self.kind, kinds) & (self.odd == odd)
        return mask


def train_corrector(
    train: Drafts,
    held_out: Drafts,
    plan: CorrectorPlan,
    taps: tuple[int, ...],
    base: str,
    progress: Progress = lambda *_: None,
) -> Corrector:
    """A head for the network whose drafts these are, its figures in `facts`. `base`: the digest of its weights."""
    begun = time.monotonic()
    checks = [held_out.labelled(0)]
    for step in range(1, plan.held_out):
        progress("held-out drafts", step / plan.held_out)
        checks.append(held_out.labelled(step))
        spent = time.monotonic() - begun
        if plan.minutes and len(checks) % 2 == 0 and spent > 60 * plan.minutes * MEASURING:
            break  # a busy machine must not spend its time on measuring what it then has no time to learn
    pool, steps = _gather(train, plan, begun, progress)
    parts = fit(pool, plan, lambda done: progress("head", done))
    verdicts = _judge(parts, checks)
    point, strict_point, figures = measure(verdicts, plan)
    facts = {
        "figures": figures,
        "trained": {
            "seed": plan.seed,
            "batches": steps,
            "tokens": len(pool.wrong),
            "wrong_share": round(float(pool.wrong.mean()), 4),
            "epochs": plan.epochs,
            "minutes": round((time.monotonic() - begun) / 60, 1),
        },
    }
    return Corrector(parts=parts, taps=taps, threshold=point, strict=strict_point, base=base, facts=facts)


def fit(pool: Labelled, plan: CorrectorPlan, progress: Callable[[float], None] = lambda _: None) -> dict[str, Tensor]:
    """A head's tensors, rounded to 16 bits as they are stored. Deterministic by the plan's seed."""
    mean, deviation = _moments(pool.states)
    parts = _fresh(pool.states.shape, plan)
    generator = torch.Generator().manual_seed(plan.seed)
    labels = torch.from_numpy(pool.wrong).float()
    rng = np.random.default_rng((plan.seed, 3))
    many, few = ([part for name, part in parts.items() if (name in OF_STATES) is yes] for yes in (True, False))
    groups = [{"params": many, "weight_decay": plan.decay}, {"params": few, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=plan.lr)
    size = min(plan.batch, len(labels))
    each = len(labels) // size
    for step in range(plan.epochs * each):
        if step % each == 0:
            order = torch.from_numpy(rng.permutation(len(labels)))
        picked = order[step % each * size :][:size]
        lr = plan.lr * (1 + math.cos(math.pi * step / (plan.epochs * each))) / 2
        for group, factor in zip(optimizer.param_groups, (OF_STATES_RATE, 1.0), strict=True):
            group["lr"] = lr * factor
        states = _drop((pool.states[picked].float() - mean) / deviation, plan.dropout, generator)
        logits = verdict(parts, states, pool.signs[picked])
        F.binary_cross_entropy_with_logits(logits, labels[picked]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        progress((step + 1) / (plan.epochs * each))
    return {name: part.detach().half().float() for name, part in folded(parts, mean, deviation).items()}


def folded(parts: Mapping[str, Tensor], mean: Tensor, deviation: Tensor) -> dict[str, Tensor]:
    """Tensors that give for plain states what `parts` give for standardised ones; mean, deviation: [K, width].

    A few directions of hidden states are a hundred times larger than the rest: fitted as they are, they would be all
    that the head learns from.
    """
    skip, gate = parts["skip.weight"] / deviation[:, None], parts["gate.weight"] / deviation[-1]
    return {
        **parts,
        "skip.weight": skip,
        "skip.bias": parts["skip.bias"] - torch.einsum("kmw,kw->km", skip, mean),
        "gate.weight": gate,
        "gate.bias": parts["gate.bias"] - gate @ mean[-1],
    }


def measure(verdicts: Verdicts, plan: CorrectorPlan) -> tuple[float, float, dict[str, Any]]:
    """The two lines, drawn on the even half, and what they give on the odd half."""
    seen, kinds = verdicts.of(DRAFTED, odd=False), (Kind.CLEAN,)
    line = choose(verdicts.scores[seen], verdicts.wrong[seen], plan.precision)
    plain_line = choose(verdicts.plain[seen], verdicts.wrong[seen], plan.precision)
    bound = max(strict(verdicts.scores[verdicts.of(kinds, odd=False)], plan.doubted), line.threshold)
    drafts, clean = verdicts.of(DRAFTED, odd=True), verdicts.of(kinds, odd=True)
    planted = verdicts.of((Kind.PLANTED,), odd=True)
    scores, wrong = verdicts.scores, verdicts.wrong

    def found(mask: Bools, threshold: float, by: Scores = scores) -> dict[str, float]:
        precision, recall = precision_recall(by[mask], wrong[mask], threshold)
        return {"precision": round(precision, 4), "recall": round(recall, 4)}

    def areas(mask: Bools, by: Scores) -> dict[str, float]:
        return {
            "average_precision": round(average_precision(by[mask], wrong[mask]), 4),
            "auc": round(rank_area(by[mask], wrong[mask]), 4),
        }

    def flagged(mask: Bools, threshold: float) -> float:
        return round(float((scores[mask & ~wrong] >= threshold).mean()), 5) if (mask & ~wrong).any() else 0.0

    figures = {
        "rule": line.rule,
        "drafts": {
            "tokens": int(drafts.sum()),
            "wrong_share": round(float(wrong[drafts].mean()), 4) if drafts.any() else 0.0,
            **found(drafts, line.threshold),
            **areas(drafts, scores),
            "by_kind": {
                k.name.lower(): found(verdicts.of((k,), odd=True), line.threshold)
                | {"average_precision": areas(verdicts.of((k,), odd=True), scores)["average_precision"]}
                for k in DRAFTED
            },
            "strict": found(drafts, bound),
        },
        "log_probability": {**found(drafts, plain_line.threshold, verdicts.plain), **areas(drafts, verdicts.plain)},
        "planted": {
            "tokens": int(planted.sum()),
            "wrong": int(wrong[planted].sum()),
            **found(planted, line.threshold),
            "strict": found(planted, bound),
            **areas(planted, scores),
            "log_probability": areas(planted, verdicts.plain),
        },
        "true_code": {
            "tokens": int(clean.sum()),
            "flagged": flagged(clean, line.threshold),
            "strict": flagged(clean, bound),
        },
    }
    return line.threshold, bound, figures


def _gather(drafts: Drafts, plan: CorrectorPlan, begun: float, progress: Progress) -> tuple[Labelled, int]:
    """Labelled tokens of batch after batch, until the plan's time, its steps or the memory for them is used up."""
    parts: list[Labelled] = []
    kept, done, started = 0, 0.0, time.monotonic()
    until = begun + 60 * plan.minutes * (1 - FITTING)
    while done < 1.0:
        parts.append(drafts.labelled(len(parts)))
        kept += parts[-1].states.nbytes
        by_time = (time.monotonic() - started) / max(1e-9, until - started) if plan.minutes else 0.0
        by_steps = len(parts) / plan.steps if plan.steps else 0.0
        done = max(by_time, by_steps, kept / MOST_BYTES)
        progress("drafts", min(1.0, done))
    whole = Labelled(
        torch.cat([p.states for p in parts]),
        torch.cat([p.signs for p in parts]),
        np.concatenate([p.wrong for p in parts]),
        np.concatenate([p.kind for p in parts]),
    )
    if not whole.wrong.any() or whole.wrong.all():
        raise InputError("The drafts are all right or all wrong: nothing tells them apart.", advice="Gather more.")
    return whole, len(parts)


def _judge(parts: Mapping[str, Tensor], checks: list[Labelled]) -> Verdicts:
    with torch.inference_mode():
        scores = [score(parts, c.states, c.signs).sigmoid().numpy() for c in checks]
    return Verdicts(
        np.concatenate(scores),
        np.concatenate([-c.signs[:, 0].numpy() for c in checks]),
        np.concatenate([c.wrong for c in checks]),
        np.concatenate([c.kind for c in checks]),
        np.concatenate([np.full(len(c.wrong), i % 2 == 1) for i, c in enumerate(checks)]),
    )


def _fresh(states: tuple[int, ...], plan: CorrectorPlan) -> dict[str, Tensor]:
    """Random matrices, the skips' small: the head begins with the signs, and a verdict near one half."""
    _, taps, width = states
    generator = torch.Generator().manual_seed(plan.seed)
    parts = {name: torch.zeros(shape) for name, shape in part_shapes(taps, width, plan.inner).items()}
    for name, inputs in (("skip.weight", 100 * width), ("signs.weight", SIGNS), ("out.weight", plan.inner)):
        parts[name] = torch.randn(parts[name].shape, generator=generator) / inputs**0.5
    return {name: part.requires_grad_() for name, part in parts.items()}


def _drop(states: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Dropout (Srivastava et al. 2014) from a generator of its own, so that nothing else changes what is dropped."""
    kept = torch.rand(states.shape, generator=generator) >= share
    return states * kept / (1 - share)


def _moments(states: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation [K, width] of states [T, K, width], a part at a time."""
    total = sum(part.double().sum(0) for part in states.split(4096))
    squares = sum(part.double().square().sum(0) for part in states.split(4096))
    assert isinstance(total, Tensor)
    assert isinstance(squares, Tensor)
    mean = total / len(states)
    variance = (squares / len(states) - mean.square()).clamp_min(1e-8)
    return mean.float(), variance.sqrt().float()
