"""Trains a draft head on a frozen model: after one hidden state, the next tokens, towards what the model says.

Knows `engine.models.draft_head`'s formulas and chunks of states; decodes nothing and reads no corpus.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import InputError, StorageError
from remask.engine.models.draft_head import advance, metadata_of, readout, rms, shapes, take_in
from remask.engine.training.corpus.store import SplitRows
from remask.engine.training.draft_states import Chunk

RIDGE = 1e-3  # of the mean square of what the linear part is fitted to
MOST_SCORE = 60.0  # exp of it, and a sum over any list, is finite in 16 bits as well


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRecipe:
    """Sizes and rates. Raises InputError for values that make no sense.

    steps: tokens drafted after the verifying pass's own. inner: width of the head's gate. listed: tokens that can be
    drafted. positions: drafts begun in a training step. taught: the model's best tokens that a draft learns from.
    fitted: positions that its linear part is fitted to first. held_out: positions of validation rows that the head is
    measured on.
    """

    steps: int = 4
    inner: int = 768
    listed: int = 8192
    positions: int = 512
    taught: int = 16
    lr: float = 1e-3
    warmup: int = 20
    fitted: int = 60_000
    held_out: int = 12_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in _BOUNDS:
            if not low <= getattr(self, name) <= high:
                raise InputError(f"A draft head's {name} is {low:g} to {high:g}, not {getattr(self, name):g}.")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> HeadRecipe:
        """Raises InputError for unknown names or wrong types."""
        known = {f.name: type(f.default) for f in fields(cls)}
        wrong = [n for n, v in values.items() if n not in known or not isinstance(v, (int, known[n]))]
        if wrong:
            raise InputError(f"A draft head has no {wrong[0]!r} of that kind; it has {', '.join(known)}.")
        return cls(**values)


_BOUNDS = (
    ("steps", 1, 16),
    ("inner", 1, 10**5),
    ("listed", 2, 10**6),
    ("positions", 1, 10**6),
    ("taught", 1, 1024),
    ("lr", 0.0, 1.0),
    ("warmup", 0, 10**6),
    ("fitted", 1, 10**7),
    ("held_out", 1, 10**7),
    ("seed", 0, 2**31),
)


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """A step's mean loss in nats; `done` is the share of the run behind it."""

    step: int
    seconds: float
    loss: float
    done: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """Held-out drafts against the model's argmax, in text that the model would have written itself.

    by_place: how often a drafted token is right where all before it are. drafts: how many were begun. tokens_a_pass:
    what verifying drafts of that length would write, one token of its own included.
    """

    by_place: tuple[float, ...]
    drafts: int

    @property
    def tokens_a_pass(self) -> float:
        """1 + a_1 + a_1 a_2 + ..."""
        return 1.0 + float(sum(accumulate(self.by_place, mul)))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        rounded = [round(one, 4) for one in self.by_place]
        return {"by_place": rounded, "drafts": self.drafts, "tokens_a_pass": round(self.tokens_a_pass, 3)}


def frequent_tokens(split: SplitRows, count: int, never: tuple[int, ...]) -> Tensor:
    """The most frequent tokens of packed rows, marks and masks left out: int64, ascending."""
    used = split.tokens[split.roles != 0]
    counts = np.bincount(used)
    counts[[t for t in never if t < len(counts)]] = 0
    order = np.argsort(-counts, kind="stable")[:count]
    return torch.from_numpy(np.sort(order[counts[order] > 0]))


class HeadTrainer:
    """A head learning from one model; `weights` are its tensors, float32.

    embedding [vocab, width] and output [vocab, width] are the model's, norm [width] its last one. With `dtype` bfloat16
    products are computed in that.
    """

    def __init__(
        self, embedding: Tensor, output: Tensor, norm: Tensor, tokens: Tensor, recipe: HeadRecipe, dtype: torch.dtype
    ) -> None:
        self.recipe, self.tokens = recipe, tokens.to(embedding.device)
        self._dtype, self._final_norm = dtype, norm.float()
        self._embedding, self._rows = embedding.to(dtype), output[self.tokens].to(dtype)
        sizes = shapes(embedding.shape[1], recipe.inner, len(tokens))
        generator = torch.Generator().manual_seed(recipe.seed)
        self.weights: dict[str, Tensor] = {
            name: (torch.randn(sizes[name], generator=generator) / sizes[name][-1] ** 0.5).to(embedding.device)
            for name in ("state", "input", "output")
        }
        for name in ("state", "input"):
            self.weights[name][2 * recipe.inner :].zero_()
        self.weights["output"].zero_()  # at first the state is what it was
        self.weights["norm"] = self._final_norm.clone()
        for weight in self.weights.values():
            weight.requires_grad_()
        self._optimizer = torch.optim.AdamW(self.weights.values(), lr=recipe.lr, betas=(0.9, 0.95), weight_decay=0.0)

    @property
    def overlap(self) -> int:
        """Tokens at a chunk's end that no draft starts from."""
        return self.recipe.steps + 1

    @torch.no_grad()
    def begin(self, chunks: Iterable[Chunk]) -> None:
        """Set the linear part to what least squares say of the next state, from a state and the token behind it.

        A head that starts so has learned in seconds what many steps would have to find out.
        """
        width = self._embedding.shape[1]
        squares, products = torch.zeros(2 * width, 2 * width), torch.zeros(2 * width, width)
        squares, products = squares.to(self.tokens.device), products.to(self.tokens.device)
        for chunk in chunks:
            follows = chunk.places[1:] == chunk.places[:-1] + 1
            states, embedded = rms(chunk.states), rms(F.embedding(chunk.tokens[1:], self._embedding).float())
            known = torch.cat([states[:-1], embedded], dim=1)[follows]
            squares += known.T @ known
            products += known.T @ (states[1:] - states[:-1])[follows]
        squares += RIDGE * squares.diagonal().mean() * torch.eye(2 * width, device=squares.device)
        found = torch.linalg.solve(squares, products).T
        for name, part in zip(("state", "input"), found.chunk(2, dim=1), strict=True):
            self.weights[name][2 * self.recipe.inner :] = part

    def run(
        self,
        chunks: Iterator[Chunk],
        steps: int,
        seconds: float,
        on_step: Callable[[HeadRecord], None] = lambda _: None,
    ) -> int:
        """Learn for `steps` steps or `seconds`, what comes first; 0 is no bound. The rate falls linearly to 0.

        Returns the steps done.
        """
        begun, number, done = time.monotonic(), 0, 0.0
        while done < 1.0:
            warm = min(1.0, (number + 1) / (self.recipe.warmup + 1))
            self._optimizer.param_groups[0]["lr"] = self.recipe.lr * warm * (1.0 - done)
            loss, _ = self._drafts(next(chunks))
            self._optimizer.zero_grad(set_to_none=False)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
            self._optimizer.step()
            number, spent = number + 1, time.monotonic() - begun
            done = min(1.0, max(number / steps if steps else 0.0, spent / seconds if seconds else 0.0))
            on_step(HeadRecord(number, spent, float(loss.detach()), done))
        return number

    @torch.no_grad()
    def agreement(self, chunks: Iterable[Chunk]) -> Agreement:
        """How often drafts are right, over chunks that know the model's `best`."""
        steps = self.recipe.steps
        right, seen = torch.zeros(steps), torch.zeros(steps)
        for chunk in chunks:
            _, drafted = self._drafts(chunk)
            count = len(chunk.tokens) - self.overlap
            right_so_far = chunk.written[:count].clone()
            for k in range(steps):
                own = chunk.best[k : k + count] == chunk.tokens[k + 1 : k + 1 + count]  # the text is the model's own
                right_so_far &= own & self._inside(chunk, k, count)
                seen[k] += right_so_far.sum().cpu()
                right_so_far &= self._best(drafted[k]) == chunk.best[k + 1 : k + 1 + count]
                right[k] += right_so_far.sum().cpu()
        return Agreement(tuple((right / seen.clamp_min(1)).tolist()), int(seen[0]))

    def save(self, path: Path, facts: Mapping[str, object]) -> None:
        """Write the head under a temporary name and rename it. Raises StorageError."""
        tensors = {"tokens": self.tokens.cpu()} | {
            n: w.detach().to(torch.bfloat16).cpu() for n, w in self.weights.items()
        }
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            save_file(tensors, unfinished, metadata_of({**facts, "recipe": asdict(self.recipe)}))
            os.replace(unfinished, path)
        except (OSError, SafetensorError) as error:
            unfinished.unlink(missing_ok=True)
            raise StorageError(f"The draft head cannot be written to {path}: {error}.") from error

    def _drafts(self, chunk: Chunk) -> tuple[Tensor, list[Tensor]]:
        """The mean loss over all places and steps, and what the short list is multiplied with at each step [P, width].

        The text behind a position is the truth; the model's own next token stands for it in decoding.
        """
        count = len(chunk.tokens) - self.overlap
        normed = rms(chunk.states)
        with torch.no_grad():
            taught = F.linear((normed * self._final_norm).to(self._dtype), self._rows).float()
            likely, places = taught.topk(min(self.recipe.taught, len(self._rows)), dim=-1)
            shares = likely.softmax(-1)
        sixteen = torch.autocast(normed.device.type, torch.bfloat16, enabled=self._dtype == torch.bfloat16)
        with sixteen:  # of every token once, not for each draft that it is in
            taken = take_in(F.embedding(chunk.tokens, self._embedding).float(), self.weights)
        state, losses, drafted = normed[:count], [], []
        for k in range(self.recipe.steps):
            behind = slice(k + 1, k + 1 + count)
            with sixteen:
                state = advance(state, taken[behind], self.weights)
            inside = self._inside(chunk, k, count).float()
            weights = inside / inside.sum().clamp_min(1)
            x = readout(state, self.weights).to(self._dtype)
            losses.append(short_list_loss(x, self._rows, places[behind], shares[behind], weights))
            drafted.append(x.detach())
        return torch.stack(losses).mean(), drafted

    def _best(self, x: Tensor) -> Tensor:
        """The listed token of most score for each row [P, width]."""
        return self.tokens[F.linear(x, self._rows).argmax(-1)]

    @staticmethod
    def _inside(chunk: Chunk, step: int, count: int) -> Tensor:
        """Whether the token that is drafted lies in the example that the draft begins in: [P] bool."""
        return chunk.places[step + 2 : step + 2 + count] == chunk.places[:count] + step + 2


class ShortListLoss(torch.autograd.Function):
    """Cross-entropy towards the model's likeliest tokens, over a short list; its gradient is made in one go with it.

    [P, listed] numbers are gone through as seldom as possible: on a CPU they cost more than the products. No maximum
    is taken off the scores, which stay far below what overflows.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, places: Tensor, shares: Tensor, weights: Tensor) -> Tensor:
        """Sum of weights [P] times losses of x [P, width]; shares [P, K] of the listed tokens at `places` [P, K]."""
        scores = F.linear(x, rows)
        wanted = (scores.gather(1, places).float() * shares).sum(1)
        powers = scores.clamp_(-MOST_SCORE, MOST_SCORE).exp_()
        total = (powers @ powers.new_ones(len(rows), 1)).float()
        powers.mul_((weights[:, None] / total).to(rows.dtype))
        powers.scatter_add_(1, places, (-shares * weights[:, None]).to(rows.dtype))
        ctx.save_for_backward(powers @ rows)
        loss: Tensor = ((total.log()[:, 0] - wanted) * weights).sum()
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of x."""
        (gradient,) = ctx.saved_tensors
        return gradient * grad.to(gradient.dtype), None, None, None, None


def short_list_loss(x: Tensor, rows: Tensor, places: Tensor, shares: Tensor, weights: Tensor) -> Tensor:
    """See `ShortListLoss.forward`."""
    loss: Tensor = ShortListLoss.apply(x, rows, places, shares, weights)  # type: ignore[no-untyped-call]
    return loss
