"""The tree of a search: each node a text with its value; which node is expanded next, which merge, which are pruned.

Pure bookkeeping: knows no model, no tokens and no text's meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Node(Generic[T]):
    """A text with its `value` (higher is better), and what was seen below it: `visits` N and the sum of values W.

    `open` are the ways to expand it that were not tried yet, the best first; `pruned` says why none will be.
    """

    number: int
    key: str
    value: float
    parent: Node[T] | None = None
    open: list[T] = field(default_factory=list)
    visits: int = 0
    total: float = 0.0
    pruned: str = ""


def ucb(total: float, visits: int, all_visits: int, explore: float) -> float:
    """W / N + c * sqrt(ln N_total / N): what a node brought, and more the less often it was tried.

    Source: UCB1 (Auer, Cesa-Bianchi & Fischer 2002), as in UCT (Kocsis & Szepesvari 2006). Values are nats, not 0 to 1,
    so c is in nats as well.
    """
    return total / visits + explore * math.sqrt(math.log(all_visits) / visits)


class Tree(Generic[T]):
    """All nodes of one search; the first that is added is the root."""

    def __init__(self, explore: float) -> None:
        self.explore = explore
        self.nodes: list[Node[T]] = []
        self._by_key: dict[str, Node[T]] = {}

    def add(self, key: str, value: float, parent: Node[T] | None, ways: list[T]) -> tuple[Node[T], bool]:
        """The node of a text and whether it is new. One that was there already is visited once more: they merge."""
        known = self._by_key.get(key)
        if known is not None:
            self._back_up(known, known.value)
            return known, False
        node = Node(len(self.nodes), key, value, parent, ways)
        self.nodes.append(node)
        self._by_key[key] = node
        self._back_up(node, value)
        return node, True

    def choose(self, count: int) -> list[tuple[Node[T], T]]:
        """The next `count` expansions, or as many as there are: each the best open way of the node of highest UCB.

        A node that was chosen counts as visited with its own mean, so that one step does not put all on one node.
        Source: virtual visits of parallel tree search (Chaslot et al. 2008).
        """
        extra: dict[int, int] = {}
        chosen: list[tuple[Node[T], T]] = []
        while len(chosen) < count:
            candidates = [node for node in self.nodes if node.open and not node.pruned]
            if not candidates:
                break
            node = max(candidates, key=lambda n: self._worth(n, extra.get(n.number, 0), sum(extra.values())))
            extra[node.number] = extra.get(node.number, 0) + 1
            chosen.append((node, node.open.pop(0)))
        return chosen

    def prune(self, margin: float) -> list[Node[T]]:
        """Give up nodes whose value is more than `margin` nats below the best one's; returns those given up now."""
        best = self.best.value
        poor = [n for n in self.nodes if not n.pruned and n.value < best - margin]
        for node in poor:
            node.pruned = f"{best - node.value:.1f} nats below the best"
        return poor

    @property
    def best(self) -> Node[T]:
        """The node of highest value; of equals the oldest."""
        return max(self.nodes, key=lambda node: node.value)

    @property
    def ranked(self) -> list[Node[T]]:
        """All nodes, the best first; of equals the oldest."""
        return sorted(self.nodes, key=lambda node: -node.value)

    def _worth(self, node: Node[T], extra: int, all_extra: int) -> float:
        visits = node.visits + extra
        all_visits = self.nodes[0].visits + all_extra
        return ucb(node.total / node.visits * visits, visits, max(all_visits, visits), self.explore)

    def _back_up(self, node: Node[T], value: float) -> None:
        at: Node[T] | None = node
        while at is not None:
            at.visits += 1
            at.total += value
            at = at.parent
