"""How well a model predicts tokens: canvases against the truth and against its own causal reading, by position.

Reads packed examples as training does, through the readers that decode; knows no text and no tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from remask.contract.errors import InputError
from remask.engine.decode.policies import policy_named
from remask.engine.decode.regimes import reader_for
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.request import Budget, Request
from remask.engine.evaluation.tasks import drawn
from remask.engine.models.model import Model
from remask.engine.models.passes import Pass
from remask.engine.models.spec import Regime
from remask.engine.session import Session
from remask.engine.training.corpus.examples import MIDDLE, PREFIX
from remask.engine.training.corpus.store import NO_SEGMENT, Corpus

MASK_RATES = (1.0, 0.85, 0.5, 0.15)  # 1.0 first: it is what a verified round drafts from
LOGIT_ROWS = 128  # rows of logits at a time: 25 MB with 50,000 tokens
READABLE = (Regime.CAUSAL, Regime.STRICT_CAUSAL)


@dataclass(frozen=True, slots=True)
class Example:
    """Tokens of a prompt and its middle, which starts at `middle`; the prefix starts at `prefix`, with its mark."""

    name: str
    tokens: list[int]
    prefix: int
    middle: int


@dataclass(slots=True)
class Block:
    """Counts by position of the canvas, int64 [B] each: masked positions seen, equal to the truth, to the argmax."""

    mask_rate: float
    seen: Tensor
    true: Tensor
    causal: Tensor

    def to_dict(self) -> dict[str, Any]:
        """Rates by position as plain JSON values; None where no position was seen."""
        return {
            "mask_rate": self.mask_rate,
            "seen": self.seen.tolist(),
            "true": _rates(self.true, self.seen),
            "causal": _rates(self.causal, self.seen),
        }


@dataclass(slots=True)
class TokenReport:
    """What `remask eval tokens` prints. Cross-entropies are in nats a token.

    ce: prefix and middle together, as training weighs neither. causal_top1: share of the middle's tokens that the
    causal reading predicts. tokens_per_round: what a draft pass over a whole canvas and a verifying pass give, the
    verifying pass's own token and the end token counted. accepted: share of rounds that accept so many draft tokens.
    """

    split: str
    model: str
    dtype: str
    device: str
    threads: int
    seed: int
    canvas: int
    n: int = 0
    interrupted: bool = False
    losses: dict[str, list[float]] = field(default_factory=lambda: {"prefix": [], "middle": []})
    hits: int = 0
    blocks: list[Block] = field(default_factory=list)
    rounds: list[tuple[int, int]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        prefix, middle = self.losses["prefix"], self.losses["middle"]
        accepted = [a for a, _ in self.rounds]
        own = ("split", "n", "model", "dtype", "device", "threads", "seed", "canvas", "interrupted")
        return {name: getattr(self, name) for name in own} | {
            "ce": _mean([*prefix, *middle]),
            "ce_prefix": _mean(prefix),
            "ce_middle": _mean(middle),
            "causal_top1": round(self.hits / len(middle), 4) if middle else None,
            "middle_tokens": len(middle),
            "blocks": [block.to_dict() for block in self.blocks],
            "rounds": len(self.rounds),
            "tokens_per_round": _mean([float(t) for _, t in self.rounds]),
            "accepted": [
                round(sum(a >= i for a in accepted) / len(accepted), 4) for i in range(1, self.canvas + 1) if accepted
            ],
        }


def read_examples(corpus: Corpus, split: str) -> list[Example]:
    """Every example of a split that has a prefix and a middle. Raises InputError for a split that is not there."""
    if split not in corpus.splits:
        raise InputError(f"The corpus in {corpus.folder} has no split {split!r}; it has {', '.join(corpus.splits)}.")
    rows = corpus.splits[split]
    found = []
    for number in range(len(rows.tokens)):
        segments, roles = np.asarray(rows.segments[number]), np.asarray(rows.roles[number])
        starts = np.flatnonzero(np.diff(segments, prepend=NO_SEGMENT)).tolist()
        for begin, end in zip(starts, [*starts[1:], len(segments)], strict=True):
            if segments[begin] == NO_SEGMENT:
                continue
            prefix, middle = (np.flatnonzero(roles[begin:end] == role) for role in (PREFIX, MIDDLE))
            if len(prefix) and len(middle):
                tokens = rows.tokens[number, begin:end].tolist()
                found.append(Example(f"{number}:{segments[begin]}", tokens, int(prefix[0]), int(middle[0])))
    if not found:
        raise InputError(f"The split {split!r} of the corpus in {corpus.folder} holds no examples.")
    return found


def measure(
    model: Model, examples: Sequence[Example], report: TokenReport, advance: Callable[[], None] = lambda: None
) -> TokenReport:
    """Add the figures of `examples` to `report`; Ctrl-C ends it with those that are done, if there are any.

    Raises InputError for weights that cannot be read causally.
    """
    if model.spec.regime not in READABLE or not model.spec.verifies:
        raise InputError(
            f"{model.spec.name} was not trained to be read causally, so there is nothing to compare its canvases with.",
            advice="Use 'remask eval infilling'.",
        )
    size = report.canvas
    report.blocks = [Block(rate, *(torch.zeros(size, dtype=torch.int64) for _ in range(3))) for rate in MASK_RATES]
    meter = _Meter(model, report)
    try:
        for example in examples:
            meter.add(example)
            report.n += 1
            advance()
    except KeyboardInterrupt:
        if report.n == 0:
            raise
        report.interrupted = True
    return report


class _Meter:
    """Measures example by example, with one session."""

    def __init__(self, model: Model, report: TokenReport) -> None:
        self._reader: Reader = reader_for(model)
        self._policy = policy_named("autoregressive", model.spec)
        self._ends = model.spec.end_ids
        self._session = Session(model.transformer.new_cache())
        self._report = report

    @torch.inference_mode()
    def add(self, example: Example) -> None:
        """Read the example causally, then its middle canvas by canvas, the last one first: the KV is only cut back."""
        own = self._causal(example)
        size = self._report.canvas
        for start in reversed(range(example.middle, len(example.tokens), size)):
            truth = example.tokens[start : start + size]
            argmax = own[start - example.middle :][: len(truth)]
            for block in self._report.blocks:
                self._canvas(example, start, truth, argmax, block)

    def _causal(self, example: Example) -> list[int]:
        """Note the losses; returns the causal argmax at every place of the middle, given the true text before it."""
        reader, tokens = self._reader, example.tokens
        self._session.cut_to([])
        device = reader.transformer.device
        hidden = reader.transformer.forward(Pass.causal(tokens[:-1], 0, device), self._session.cache)
        self._session.keep(tokens[:-1])
        targets = torch.tensor(tokens[1:], device=device)
        first = example.prefix  # the row of the prefix's mark predicts the prefix's first token
        losses: list[float] = []
        for at in range(first, len(targets), LOGIT_ROWS):
            logits = reader.transformer.logits(hidden[at : at + LOGIT_ROWS])
            losses += torch.nn.functional.cross_entropy(
                logits, targets[at : at + LOGIT_ROWS], reduction="none"
            ).tolist()
        cut = example.middle - 1 - first
        self._report.losses["prefix"] += losses[:cut]
        self._report.losses["middle"] += losses[cut:]
        rows = hidden[example.middle - 1 :].split(LOGIT_ROWS)
        own = [token for part in rows for token in reader.scores(part).argmax(-1).tolist()]
        self._report.hits += sum(a == b for a, b in zip(own, tokens[example.middle :], strict=True))
        return own

    def _canvas(self, example: Example, start: int, truth: list[int], argmax: list[int], block: Block) -> None:
        """One denoising pass over the canvas at `start`, with some of the truth visible; a round where none is."""
        size, known = self._report.canvas, len(truth)
        generator = torch.Generator().manual_seed(
            drawn(self._report.seed, f"{example.name}:{start}:{block.mask_rate}") % 2**63
        )
        masked = torch.rand(size, generator=generator) < block.mask_rate
        masked[known:] = True  # behind the end of the middle nothing is true
        if not masked[:known].any():
            return
        self._session.cut_to(example.tokens[: start - 1])
        request = Request(self._session, self._policy, Budget(1 << 30), pending=[example.tokens[start - 1]])
        canvas = self._reader.canvas(request, size)
        shown = torch.tensor([*truth, *[0] * (size - known)])
        canvas.commit(shown, torch.ones(size), ~masked)
        predicted = torch.zeros(size, dtype=torch.int64)
        predicted[masked] = self._reader.predict(request, canvas).argmax(-1).cpu()
        counted = masked[:known]
        block.seen[:known] += counted
        block.true[:known] += counted & (predicted[:known] == torch.tensor(truth))
        block.causal[:known] += counted & (predicted[:known] == torch.tensor(argmax))
        if block.mask_rate == 1.0:
            self._report.rounds.append(self._round(request, predicted.tolist()))

    def _round(self, request: Request, draft: list[int]) -> tuple[int, int]:
        """Verify a draft as decoding does: how many of its tokens are accepted, and how many are written."""
        draft = self._to_end(draft)
        written = self._to_end(self._reader.verify(request, draft))
        accepted = next((i for i, (d, w) in enumerate(zip(draft, written, strict=False)) if d != w), None)
        return min(len(draft), len(written)) if accepted is None else accepted, len(written)

    def _to_end(self, tokens: list[int]) -> list[int]:
        """Tokens up to the first end token, which belongs to them."""
        stop = next((i for i, token in enumerate(tokens) if token in self._ends), len(tokens))
        return tokens[: stop + 1]


def _rates(hits: Tensor, seen: Tensor) -> list[float | None]:
    return [round(h / s, 4) if s else None for h, s in zip(hits.tolist(), seen.tolist(), strict=True)]


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None
