"""The tree's bookkeeping against a naive count over its nodes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.engine.decode.search.tree import Tree, ucb

GROWTH = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.floats(-20, 0)), min_size=1, max_size=30)


def grown(growth, explore=1.0):
    """A tree where each entry hangs a text, one of seven, under an earlier node."""
    tree, seen = Tree(explore), []
    for parent, key, value in growth:
        node, new = tree.add(str(key), value, tree.nodes[parent % len(tree.nodes)] if tree.nodes else None, [1, 2])
        seen.append((node, new))
    return tree, seen


@given(GROWTH)
def test_visits_and_totals_are_those_of_all_that_hangs_below(growth):
    tree, seen = grown(growth)
    for node in tree.nodes:
        below = [n for n, _ in seen if node in ancestors(n)]
        assert node.visits == len(below)
        assert node.total == pytest.approx(sum(n.value for n in below))


def ancestors(node):
    while node is not None:
        yield node
        node = node.parent


@given(GROWTH)
def test_equal_texts_are_one_node_which_keeps_its_first_value(growth):
    tree, seen = grown(growth)
    assert len({node.key for node in tree.nodes}) == len(tree.nodes) == sum(new for _, new in seen)
    first = {}
    for _, key, value in growth:
        first.setdefault(str(key), value)
    assert {node.key: node.value for node in tree.nodes} == first


@given(GROWTH, st.floats(0, 5))
def test_the_first_choice_is_the_node_of_highest_ucb_and_its_best_way(growth, explore):
    tree, _ = grown(growth, explore)
    total = tree.nodes[0].visits

    def worth(node):
        return node.total / node.visits + explore * math.sqrt(math.log(max(total, node.visits)) / node.visits)

    best = max(worth(node) for node in tree.nodes)
    [(node, way)] = tree.choose(1)
    assert worth(node) == pytest.approx(best)
    assert (way, node.open) == (1, [2])


def test_without_exploring_the_best_is_exhausted_before_the_next_and_choices_end():
    tree = Tree(0.0)
    root, _ = tree.add("a", -1.0, None, ["a1", "a2"])
    tree.add("b", -5.0, root, ["b1"])
    assert [way for _, way in tree.choose(9)] == ["a1", "a2", "b1"]
    assert tree.choose(1) == []


def test_one_step_does_not_put_all_on_one_node_when_it_explores():
    tree = Tree(10.0)
    root, _ = tree.add("a", -1.0, None, list(range(9)))
    tree.add("b", -1.1, root, list(range(9)))
    assert len({node.key for node, _ in tree.choose(4)}) == 2


def test_what_is_pruned_is_not_expanded_and_says_why():
    tree = Tree(1.0)
    root, _ = tree.add("a", -1.0, None, [])
    poor, _ = tree.add("b", -9.0, root, ["b1"])
    assert tree.prune(10.0) == []
    assert tree.prune(5.0) == [poor]
    assert "8.0 nats" in poor.pruned
    assert tree.prune(5.0) == []
    assert tree.choose(1) == []
    assert tree.ranked == [root, poor]


def test_ucb_is_the_formula():
    assert ucb(-6.0, 3, 20, 2.0) == pytest.approx(-2.0 + 2.0 * math.sqrt(math.log(20) / 3))
