"""A draft head at work: tokens one after another from a hidden state, on matrices prepared once for this processor.

Knows `draft_head`'s formulas; knows no request and no verification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import InputError
from remask.engine.models.checkpoint import HEAD
from remask.engine.models.draft_head import FILE, advance, read_head, readout, rms, take_in
from remask.engine.models.matrix import Matrix, Rows, matrix_of, picked, values_of
from remask.engine.models.native_draft import CHOICES, NativeDraft
from remask.engine.models.shards import checksums, verify
from remask.engine.models.spec import Shape
from remask.engine.models.transfer import sent, together

Places = Callable[[Tensor, int, int, float], tuple[list[list[int]], list[list[float]]]]
"""From a state, its token, the most places and how sure: the best tokens at each place, and their chances."""


@dataclass(slots=True)
class Guess:
    """Tokens that may follow, the likeliest ones, and others that may stand in a token's place.

    chances: the head's probability of each token where those before it are right. others: (place, token, chance) of
    tokens that it thinks less likely at that place, chances counted from the start.
    """

    tokens: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    others: list[tuple[int, int, float]] = field(default_factory=list)


class DraftHead:
    """A head over the weights that it was made for; `weights` as `read_weights` gives them, in any precision.

    On a CPU whose model is int8 the head's matrices are, too, and C drafts; else they are in the dtype that the model
    computes in.
    """

    def __init__(self, tensors: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        embedding = matrix_of(weights, "model.embed_tokens.weight")
        head = matrix_of(weights, HEAD) if HEAD in weights else embedding
        device = values_of(embedding).device
        self.tokens = tensors["tokens"].to(device)  # [listed]
        if isinstance(embedding, Rows) and isinstance(head, Rows) and device.type == "cpu":
            rows, scale = head.values[self.tokens], head.scale[self.tokens]
            self._places: Places = NativeDraft(tensors, *embedding, rows, scale)
        else:
            dtype = weights["model.norm.weight"].dtype if isinstance(embedding, Rows) else embedding.dtype
            self._places = TorchDraft(tensors, embedding, picked(head, self.tokens, dtype))

    @classmethod
    def load(cls, path: Path, shape: Shape, weights: Mapping[str, Tensor]) -> DraftHead:
        """The head in a file. Raises ModelError where it is damaged or belongs to another shape of model."""
        verify(path, checksums(path.parent).get(path.name))
        tensors, _ = read_head(path, shape.width, shape.vocab)
        return cls(tensors, weights)

    @torch.inference_mode()
    def guess(self, hidden: Tensor, token: int, size: int, sure: float = 0.0, other: float = 1.0) -> Guess:
        """At most `size` tokens behind `token`, which the row with the state `hidden` [width] predicted.

        Ends behind a token with which the chance that all are right falls below `sure`. Second and third choices are
        `others` where the chance that a text goes on with them is `other` or more.
        """
        found, before = Guess(), 1.0
        for place, (tokens, chances) in enumerate(zip(*self._places(hidden, token, size, sure), strict=True)):
            found.tokens.append(tokens[0])
            found.chances.append(chances[0])
            second = ((t, before * c) for t, c in zip(tokens[1:], chances[1:], strict=True))
            found.others += [(place, t, c) for t, c in second if c >= other]
            before *= chances[0]
        return found


class TorchDraft:
    """A head's work in torch, on any device, in the dtype of `rows` [listed, width]; embedding [vocab, width]."""

    def __init__(self, tensors: Mapping[str, Tensor], embedding: Matrix, rows: Tensor) -> None:
        self._embedding, self._rows = embedding, rows
        self._tokens = tensors["tokens"].to(rows.device)
        self._weights = {n: t.to(rows.device, rows.dtype) for n, t in tensors.items() if n != "tokens"}

    def __call__(self, hidden: Tensor, token: int, size: int, sure: float) -> tuple[list[list[int]], list[list[float]]]:
        """See `NativeDraft`."""
        made: list[Tensor] = []  # tokens and chances of each place, in turn
        state, chance, dtype, device = rms(hidden.float()), 1.0, self._rows.dtype, self._rows.device
        newest = sent([token], device)
        while len(made) < 2 * size and chance >= sure:
            taken = take_in(picked(self._embedding, newest, dtype)[0], self._weights)
            state = advance(state.to(dtype), taken, self._weights).float()
            scores = F.linear(readout(state, self._weights).to(dtype), self._rows).float()
            best, places = scores.topk(min(CHOICES, len(scores)))
            made += [self._tokens[places], (best - torch.logsumexp(scores, 0)).exp()]
            newest = made[-2][:1]
            if device.type == "cpu":  # a card drafts all of them: a wait for each costs more
                chance *= float(made[-1][0])
        return _sure_ones(together(*made), sure)


def _sure_ones(made: Sequence[Tensor], sure: float) -> tuple[list[list[int]], list[list[float]]]:
    """Tokens and chances of each place, up to the one with which it is less sure than this that all are right."""
    tokens: list[list[int]] = []
    chances: list[list[float]] = []
    chance = 1.0
    for found, likely in zip(made[::2], made[1::2], strict=True):
        if chance < sure:
            break
        tokens.append(found.tolist())
        chances.append(likely.tolist())
        chance *= chances[-1][0]
    return tokens, chances


def find_draft_head(named: Path | None, folders: Iterable[Path]) -> Path | None:
    """The file of that name, else the first that lies in one of `folders`; None where there is none.

    A head that was made for the weights without an adapter serves with it, too: it drafts a little worse. Raises
    InputError for a named file that is not there.
    """
    if named is None:
        return next((path for folder in folders if (path := folder / FILE).is_file()), None)
    path = named / FILE if named.is_dir() else named
    if not path.is_file():
        raise InputError(f"There is no draft head {named}.", advice="'remask train draft-head' makes one.")
    return path
