"""Several drafts in one pass: a tree of tokens behind the newest known one, each seeing the tokens on its way only.

Knows tokens and rows; knows no model. Sources: SpecInfer (Miao et al. 2024), Medusa (Cai et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from remask.engine.models.passes import Pass
from remask.engine.models.transfer import onto, sent


class DraftTree:
    """Rows of a pass: known tokens, behind them a draft, and behind that what other drafts say beside it.

    The first `known` + len(draft) rows are one text; a later row goes on from an earlier one, its parent.
    """

    def __init__(self, known: Sequence[int], draft: Sequence[int], others: Iterable[Sequence[int]] = ()) -> None:
        self.tokens = [*known, *draft]
        self.trunk = len(self.tokens)  # rows that are one text
        self.root = len(known) - 1
        self.parents = list(range(-1, self.trunk - 1))
        self.depths = list(range(self.trunk))  # of a row's token in its text
        self._child = {(row - 1, self.tokens[row]): row for row in range(len(known), self.trunk)}
        for other in others:
            self._grow(other)

    def __len__(self) -> int:
        return len(self.tokens)

    def walk(self, own: Sequence[int]) -> list[int]:
        """The rows from the root on whose tokens are what the pass itself wrote; own[i] is said by row root + i."""
        rows = [self.root]
        while (row := self._child.get((rows[-1], own[rows[-1] - self.root]))) is not None:
            rows.append(row)
        return rows

    def way(self, row: int) -> list[int]:
        """The rows from the root to a row, both included."""
        rows = [row]
        while rows[-1] != self.root:
            rows.append(self.parents[rows[-1]])
        return rows[::-1]

    def behind_root(self, row: int) -> list[int]:
        """The tokens behind the root on the way to a row, its own included."""
        return [self.tokens[one] for one in self.way(row)[1:]]

    def mask(self) -> Tensor:
        """[T, T] bool: a row sees itself and its ancestors."""
        seen = [[column <= row for column in range(len(self))] for row in range(self.trunk)]
        for row in range(self.trunk, len(self)):
            seen.append(list(seen[self.parents[row]]))
            seen[row][row] = True
        return torch.tensor(seen)

    def widened(self, step: Pass) -> Pass:
        """A pass over the trunk and what is read behind it, with the tree's other rows between them."""
        trunk, rows, behind = self.trunk, len(self), len(step.tokens) - self.trunk
        if rows == trunk:
            return step
        device = step.tokens.device
        if not behind:
            places = sent(self.depths, device) + step.positions[0]
            return Pass(sent(self.tokens, device), places, onto(self.mask(), device))
        mask = torch.zeros(rows + behind, rows + behind, dtype=torch.bool, device=device)
        mask[:rows, :rows] = onto(self.mask(), device)
        if step.mask is not None:
            mask[rows:, :trunk] = step.mask[trunk:, :trunk]
            mask[rows:, rows:] = step.mask[trunk:, trunk:]
        more = (self.tokens, self.depths)
        tokens, places = (sent(values[trunk:], device) for values in more)
        return Pass(
            torch.cat([step.tokens[:trunk], tokens, step.tokens[trunk:]]),
            torch.cat([step.positions[:trunk], places + step.positions[0], step.positions[trunk:]]),
            mask,
        )

    def _grow(self, tokens: Sequence[int]) -> None:
        at = self.root
        for token in tokens:
            if (at, token) not in self._child:
                self._child[at, token] = len(self.tokens)
                self.parents.append(at)
                self.depths.append(self.depths[at] + 1)
                self.tokens.append(token)
            at = self._child[at, token]
