"""Contrastive search inside a verifying pass: which of the likeliest tokens says least again, at every place at once.

A second pass reads the likeliest tokens behind each place of the draft, as leaves of the tree that the first pass read;
how alike a leaf's state is to the earlier ones lowers its value. So a draft is verified as before, in two passes, and
the text is that of contrastive search one token at a time. Source: SimCTG (Su et al. 2022). Knows no policy of drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from remask.engine.control.penalties import contrasted, degeneration
from remask.engine.decode.tree import DraftTree
from remask.engine.models.passes import Pass
from remask.engine.models.transfer import onto, picked_rows

if TYPE_CHECKING:
    from remask.engine.decode.regimes.base import Reader
    from remask.engine.decode.request import Request


class Contrast:
    """Of one text: the states of the tokens that verifying passes have read, from the newest one of the prompt on."""

    def __init__(self) -> None:
        self._earlier: Tensor | None = None  # [T, width]
        self._read = torch.empty(0)  # [rows from the root on, width], of the pass at hand

    def choose(self, reader: Reader, request: Request, tree: DraftTree, hidden: Tensor, scores: Tensor) -> Tensor:
        """The token of most value behind every row of the tree from its root on: [n] int64.

        hidden [len(tree) or more, width] and scores [n, vocab] are of the pass that has read the tree.
        """
        policy, transformer = request.policy, reader.transformer
        self._read = transformer.normed(hidden[tree.root : len(tree)])
        probability, tokens = scores.softmax(-1).topk(policy.contrasted, dim=-1)  # [n, K] each
        leaves = transformer.normed(self._leaves(reader, request, tree, tokens)).unflatten(0, tokens.shape)
        best = []
        for row, (p, states) in enumerate(zip(probability, leaves, strict=True)):
            way = [one - tree.root for one in tree.way(tree.root + row)]
            read = picked_rows(self._read, way)
            earlier = read if self._earlier is None else torch.cat([self._earlier, read])
            best.append(contrasted(p, degeneration(states, earlier), policy.contrast).argmax())
        return tokens.gather(1, torch.stack(best)[:, None])[:, 0]

    def keep(self, rows: Sequence[int], root: int) -> None:
        """The text goes on behind these rows of the last pass's tree; the root stands first."""
        read = picked_rows(self._read, [row - root for row in rows])
        self._earlier = read if self._earlier is None else torch.cat([self._earlier, read])

    def _leaves(self, reader: Reader, request: Request, tree: DraftTree, tokens: Tensor) -> Tensor:
        """The states [n * K, width] of tokens [n, K] behind the tree's rows; what the tree wrote to the cache stays."""
        cache, count = request.session.cache, len(tree)
        each, device = tokens.shape[1], tokens.device
        mask = torch.zeros(tokens.numel(), count + tokens.numel(), dtype=torch.bool)
        mask[:, :count] = tree.mask()[tree.root :].repeat_interleave(each, 0)
        mask[:, count:] = torch.eye(tokens.numel(), dtype=torch.bool)
        depths = torch.tensor(tree.depths[tree.root :]).repeat_interleave(each) + cache.length + 1
        step = Pass(tokens.flatten(), onto(depths, device), onto(mask, device))
        cache.advance(count)
        try:
            return reader.forward(request, step)
        finally:
            cache.length -= count  # no truncating: the entries of what is accepted are kept
