"""Trains a draft head on a frozen network: after one hidden state, the next tokens, towards what the network says.

Knows `engine.models.draft_head`'s formulas and packed rows; decodes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import InputError, StorageError
from remask.engine.models.draft_head import advance, metadata_of, readout, rms, shapes
from remask.engine.training.batches import Batch, Batches
from remask.engine.training.corpus.store import SplitRows
from remask.engine.training.network import Network
from remask.engine.training.objective import read

POSITIONS = 384  # a micro-batch starts so many drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRecipe:
    """Sizes and rates. steps: tokens drafted after the verifying pass's own. listed: tokens that can be drafted."""

    steps: int = 4
    inner: int = 768
    listed: int = 8192
    lr: float = 1e-3
    warmup: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("steps", 1, 16), ("inner", 1, 10**5), ("listed", 2, 10**6)):
            if not low <= getattr(self, name) <= high:
                raise InputError(f"A draft head's {name} is {low} to {high}, not {getattr(self, name)}.")


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """A step's mean loss in nats, or held-out agreement with the network's argmax by draft position, 0 to 1."""

    step: int
    seconds: float
    loss: float
    agreement: tuple[float, ...] = ()


def frequent_tokens(split: SplitRows, count: int, never: tuple[int, ...]) -> Tensor:
    """The most frequent tokens of packed rows, marks and masks left out: int64, ascending."""
    used = split.tokens[split.roles != 0]
    counts = np.bincount(used)
    counts[[t for t in never if t < len(counts)]] = 0
    order = np.argsort(-counts, kind="stable")[:count]
    return torch.from_numpy(np.sort(order[counts[order] > 0]))


class HeadTrainer:
    """A head learning from one network; `weights` are its tensors, float32."""

    def __init__(self, network: Network, tokens: Tensor, batches: Batches, recipe: HeadRecipe) -> None:
        self.recipe, self.tokens = recipe, tokens
        self._network, self._batches = network, batches
        width = network.shape.width
        generator = torch.Generator().manual_seed(recipe.seed)
        sizes = shapes(width, recipe.inner, len(tokens))
        self.weights: dict[str, Tensor] = {
            name: (torch.randn(sizes[name], generator=generator) / sizes[name][-1] ** 0.5).to(network.device)
            for name in ("state", "input", "output")
        }
        self.weights["output"].zero_()  # at first the state is what it was
        self.weights["norm"] = network.weight("model.norm.weight").detach().float().clone()
        for weight in self.weights.values():
            weight.requires_grad_()
        head = "model.embed_tokens.weight" if network.shape.tied_embeddings else "lm_head.weight"
        self._rows = network.weight(head).detach()[tokens.to(network.device)]
        self._embedding = network.weight("model.embed_tokens.weight").detach()
        self._optimizer = torch.optim.AdamW(self.weights.values(), lr=recipe.lr, betas=(0.9, 0.95), weight_decay=0.0)

    def run(self, steps: int, seconds: float, on_step: Callable[[HeadRecord], None]) -> None:
        """Learn for `steps` steps or `seconds`, what comes first; 0 is no bound. The rate falls linearly to 0."""
        begun = time.monotonic()
        number = 0
        while True:
            spent = time.monotonic() - begun
            done = max(number / steps if steps else 0.0, spent / seconds if seconds else 0.0)
            if done >= 1.0:
                return
            warm = min(1.0, (number + 1) / (self.recipe.warmup + 1))
            self._optimizer.param_groups[0]["lr"] = self.recipe.lr * warm * (1.0 - done)
            loss, _ = self._losses(self._batches.batch(number))
            self._optimizer.zero_grad(set_to_none=False)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
            self._optimizer.step()
            number += 1
            on_step(HeadRecord(number, time.monotonic() - begun, float(loss.detach())))

    @torch.no_grad()
    def agreement(self, held_out: Batches, count: int) -> tuple[float, ...]:
        """How often each drafted token, all before it right, is the network's argmax: over `count` held-out batches."""
        right, seen = torch.zeros(self.recipe.steps), torch.zeros(self.recipe.steps)
        for number in range(count):
            _, (hit, valid) = self._losses(held_out.batch(number))
            so_far = torch.ones_like(hit[0])
            for k in range(self.recipe.steps):
                reached = so_far & valid[k]
                so_far = so_far & hit[k]
                right[k] += (reached & hit[k]).sum()
                seen[k] += reached.sum()
        return tuple((right / seen.clamp_min(1)).tolist())

    def save(self, path: Path, facts: Mapping[str, object]) -> None:
        """Write the head under a temporary name and rename it. Raises StorageError."""
        tensors = {"tokens": self.tokens.cpu()} | {
            n: w.detach().to(torch.bfloat16).cpu() for n, w in self.weights.items()
        }
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            save_file(tensors, unfinished, metadata_of(facts))
            os.replace(unfinished, path)
        except (OSError, SafetensorError) as error:
            unfinished.unlink(missing_ok=True)
            raise StorageError(f"The draft head cannot be written to {path}: {error}.") from error

    def _losses(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Mean divergence from the network over the short list, and [steps, P] bool: hits, and what is valid.

        The text behind a position is the truth; the network's own next token stands for it in decoding.
        """
        anchors, tokens, valid = self._places(batch)  # [P], [steps + 1, P], [steps, P]
        with torch.no_grad():
            hidden, (last,) = read(self._network, batch, (self._network.shape.layers - 1,))
            taught = [F.linear(hidden[anchors + k + 1], self._rows).float() for k in range(self.recipe.steps)]
            best = [self._network.logits(hidden[anchors + k + 1]).argmax(-1) for k in range(self.recipe.steps)]
        listed = self.tokens.to(anchors.device)
        state, losses, hits = rms(last[anchors].float()), [], []
        for k in range(self.recipe.steps):
            state = advance(state, F.embedding(tokens[k], self._embedding).float(), self.weights)
            scores = F.linear(readout(state, self.weights).to(self._rows.dtype), self._rows).float()
            divergence = F.kl_div(
                scores.log_softmax(-1), taught[k].log_softmax(-1), reduction="none", log_target=True
            ).sum(-1)
            losses.append((divergence * valid[k]).sum() / valid[k].sum().clamp_min(1))
            hits.append(listed[scores.argmax(-1)] == best[k])
        return torch.stack(losses).mean(), (torch.stack(hits), valid)

    def _places(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Flat rows that drafts start from, the tokens behind them, and whether a drafted one lies in its example."""
        rows = batch.rows[batch.weights > 0][:POSITIONS]
        rows = np.pad(rows, (0, POSITIONS - len(rows)), mode="edge")
        flat, positions = batch.tokens.reshape(-1), batch.positions.reshape(-1)
        steps = np.arange(1, self.recipe.steps + 2)[:, None]
        at = np.minimum(rows[None, :] + steps, len(flat) - 1)
        inside = positions[at] == positions[rows][None, :] + steps  # an example's positions count up from 0
        device = self._network.device
        anchors = np.minimum(rows, len(flat) - self.recipe.steps - 1)
        return (
            torch.from_numpy(anchors).to(device),
            torch.from_numpy(flat[at]).to(device),
            torch.from_numpy(inside[1:]).to(device),
        )
