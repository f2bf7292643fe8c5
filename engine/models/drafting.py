"""A draft head at work: tokens one after another from a hidden state, on matrices prepared once for this processor.

Knows `draft_head`'s formulas; knows no request and no verification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from remask.contract.errors import InputError
from remask.engine.models.checkpoint import HEAD, quantise
from remask.engine.models.draft_head import FILE, joined, read_head, rms
from remask.engine.models.native_product import Int8Product
from remask.engine.models.shards import checksums, verify
from remask.engine.models.spec import Shape

Product = Callable[[Tensor], Tensor]
"""A matrix times one row: [in] float32 -> [out] float32."""


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

    The short list's rows and the head's own matrices are int8 on a CPU whose model is int8, else in the model's dtype.
    """

    def __init__(self, tensors: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        self._embedding = weights["model.embed_tokens.weight"]
        self._embedding_scale = weights.get("model.embed_tokens.weight_scale")
        head = HEAD if HEAD in weights else "model.embed_tokens.weight"
        self.tokens = tensors["tokens"].to(self._embedding.device)  # [listed]
        self._norm = tensors["norm"].to(self._embedding.device)
        rows, scale = weights[head][self.tokens], weights.get(f"{head}_scale")
        self._listed = self._product(rows, None if scale is None else scale[self.tokens])
        self._taking_in = self._product(torch.cat([tensors["state"], tensors["input"]], dim=1))
        self._output = self._product(tensors["output"])

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
        found, chance = Guess(), 1.0
        state = rms(hidden.float())
        while len(found.tokens) < size and chance >= sure:
            parts = self._taking_in(torch.cat([rms(state), rms(self._embed(token))]))
            state = joined(state, parts, self._output)
            scores = self._listed(rms(state) * self._norm)
            best, places = scores.topk(min(3, len(scores)))
            whole = torch.logsumexp(scores, 0)
            chances, tokens = (best - whole).exp().tolist(), self.tokens[places].tolist()
            at = len(found.tokens)
            found.others += [
                (at, t, chance * c) for t, c in zip(tokens[1:], chances[1:], strict=True) if chance * c >= other
            ]
            token = tokens[0]
            found.tokens.append(token)
            found.chances.append(chances[0])
            chance *= chances[0]
        return found

    def _embed(self, token: int) -> Tensor:
        row = self._embedding[token].float()
        return row if self._embedding_scale is None else row * self._embedding_scale[token]

    def _product(self, matrix: Tensor, scale: Tensor | None = None) -> Product:
        dtype, device = self._embedding.dtype, self._embedding.device
        if dtype == torch.int8:
            return Int8Product(*(quantise(matrix) if scale is None else (matrix, scale)))
        held = matrix.to(device, dtype).contiguous()
        return lambda row: F.linear(row.to(dtype), held).float()


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
