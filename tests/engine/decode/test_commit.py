"""Commit rules and schedules, each against a naive reading of its formula."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tiny import END, PREFIX, scripted_model, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.commit import (
    Look,
    Stability,
    chosen,
    commit_best,
    commit_confident,
    commit_entropy,
    commit_hierarchical,
    commit_left,
    credited,
    default_steps,
    falling,
    masked_share,
)
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import Commit, Policy, Schedule, Verify
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.sample import entropy
from remask.engine.decode.stop import StopRules
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)


@pytest.mark.parametrize(
    ("probability", "open_", "threshold", "want"),
    [
        ([0.9, 0.2, 0.8], [1, 1, 1], 0.7, [1, 0, 1]),
        ([0.1, 0.3, 0.2], [1, 1, 1], 0.7, [0, 1, 0]),  # at least one
        ([0.99, 0.3, 0.2], [0, 1, 1], 0.7, [0, 1, 0]),  # committed positions do not count
        ([0.5, 0.5, 0.5], [1, 1, 1], 0.7, [1, 0, 0]),  # a tie goes left
        ([0.7, 0.1, 0.1], [1, 1, 1], 0.7, [1, 0, 0]),  # the bound itself is enough
        ([0.1, 0.1, 0.1], [1, 1, 1], 0.0, [1, 1, 1]),
    ],
)
def test_commit_confident(probability, open_, threshold, want):
    got = commit_confident(torch.tensor(probability), torch.tensor(open_, dtype=torch.bool), threshold)
    assert got.int().tolist() == want


canvases = st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=16).filter(
    lambda rows: any(o for _, o in rows)
)


def tensors(rows):
    return torch.tensor([p for p, _ in rows]), torch.tensor([o for _, o in rows])


@given(canvases, st.sampled_from(Commit), st.sampled_from(Schedule), st.floats(0, 1), st.integers(0, 4))
def test_every_rule_commits_something_open_and_nothing_else(rows, commit, schedule, number, step):
    probability, open_ = tensors(rows)
    policy = Policy(
        name="x",
        canvas=16,
        threshold=number,
        commit=commit,
        schedule=schedule,
        bound=number,
        low=number,
        penalty=number,
        window=step,
    )
    got = chosen(Look(probability, 1 - probability, open_, step, 5), policy)
    assert got.any()
    assert not (got & ~open_).any()


@given(canvases, st.integers(-3, 20))
def test_best_takes_the_highest(rows, count):
    probability, open_ = tensors(rows)
    ranked = sorted((i for i in range(len(rows)) if rows[i][1]), key=lambda i: (-rows[i][0], i))
    assert set(commit_best(probability, open_, count).nonzero()[:, 0].tolist()) == set(ranked[: max(1, count)])


@given(canvases, st.floats(0, 3))
def test_entropy_adds_up_to_the_bound(rows, bound):
    spread, open_ = tensors(rows)
    want, total = set(), 0.0
    for i in sorted((i for i in range(len(rows)) if rows[i][1]), key=lambda i: (rows[i][0], i)):
        assume(not want or abs(total - bound) > 1e-4)  # rounding decides there
        if total > bound:  # what was taken before, that is: all of the set but its largest member
            break
        want.add(i)
        total += rows[i][0]
    assert set(commit_entropy(spread, open_, bound).nonzero()[:, 0].tolist()) == want


def naive_hierarchical(rows, threshold, low):
    want, i = set(), 0
    while i < len(rows):
        j = i
        while j < len(rows) and rows[j][1]:
            j += 1
        stretch = range(i, j)
        want |= {k for k in stretch if rows[k][0] >= threshold}
        if stretch:
            best = max(stretch, key=lambda k: (rows[k][0], -k))
            want |= {best} if rows[best][0] > low else set()
        i = j + 1
    return want or {max((k for k in range(len(rows)) if rows[k][1]), key=lambda k: (rows[k][0], -k))}


@given(canvases, st.floats(0, 1), st.floats(0, 1))
def test_hierarchical_takes_the_best_of_every_stretch(rows, threshold, low):
    threshold, low = torch.tensor([threshold, low]).tolist()  # as float32 sees them
    probability, open_ = tensors(rows)
    got = set(commit_hierarchical(probability, open_, threshold, low).nonzero()[:, 0].tolist())
    best = max((k for k in range(len(rows)) if rows[k][1]), key=lambda k: (rows[k][0], -k))
    assert got == naive_hierarchical(rows, threshold, low) | {best}


def test_hierarchical_needs_logarithmically_many_passes():
    """Where the middle of every stretch is its surest position, 2^5 - 1 masks take five passes."""
    open_, sizes = torch.ones(31, dtype=torch.bool), []
    while open_.any():
        probability = torch.zeros(31)
        for i in range(31):
            start = next((j + 1 for j in range(i, -1, -1) if not open_[j]), 0)
            end = next((j for j in range(i, 31) if not open_[j]), 31)
            probability[i] = 0.5 if open_[i] and i == (start + end) // 2 else 0.4
        taken = commit_hierarchical(probability, open_, 0.9, 0.3)
        open_ &= ~taken
        sizes.append(int(taken.sum()))
    assert sizes == [1, 2, 4, 8, 16]


@given(canvases, st.floats(0, 1), st.sampled_from([0.0, 0.02, 0.5]), st.integers(0, 5))
def test_left_prefers_what_is_near_the_first_mask(rows, threshold, penalty, window):
    probability, open_ = tensors(rows)
    first = next(i for i, (_, o) in enumerate(rows) if o)
    near = [i for i in range(len(rows)) if rows[i][1] and (window == 0 or i - first < window)]
    worth = (probability - penalty * (torch.arange(len(rows)) - first)).tolist()
    want = {i for i in near if worth[i] >= torch.tensor(threshold).item()} | {max(near, key=lambda i: (worth[i], -i))}
    got = set(commit_left(probability, open_, threshold, penalty, window).nonzero()[:, 0].tolist())
    assert got == want or any(abs(worth[i] - threshold) < 1e-6 for i in got ^ want)


def test_credit_is_a_fading_sum_that_raises_what_stays_best():
    scores = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.5, 0.0]])
    credit, naive = torch.zeros(2, 3), [[0.0] * 3 for _ in range(2)]
    for _ in range(4):
        raised, credit = credited(scores, credit)
        for r, row in enumerate(scores.softmax(-1).tolist()):
            naive[r] = [0.8 * c for c in naive[r]]
            naive[r][row.index(max(row))] += max(row) ** 0.2
        torch.testing.assert_close(credit, torch.tensor(naive))
        torch.testing.assert_close(raised, scores + 0.7 * torch.log(torch.tensor(naive) + 1))
    assert (raised.softmax(-1).amax(-1) > scores.softmax(-1).amax(-1)).all()


@pytest.mark.parametrize(
    ("schedule", "shares"),
    [
        (Schedule.LINEAR, [1.0, 0.75, 0.5, 0.25, 0.0]),
        (Schedule.COSINE, [1.0, 0.9239, 0.7071, 0.3827, 0.0]),
        (Schedule.SQUARE, [1.0, 0.9375, 0.75, 0.4375, 0.0]),
    ],
)
def test_schedules(schedule, shares):
    assert [masked_share(schedule, i / 4) for i in range(5)] == pytest.approx(shares, abs=1e-4)


def test_default_steps_are_about_the_square_root():
    assert [default_steps(n) for n in (0, 1, 2, 4, 5, 16, 17, 64, 256)] == [1, 1, 2, 2, 3, 4, 5, 8, 16]
    assert all(default_steps(n) == max(1, math.ceil(math.sqrt(n))) for n in range(300))


def test_temperature_falls_to_its_smallest_share():
    assert [falling(0.9, i, 3) for i in range(3)] == pytest.approx([0.9, 0.6, 0.3])


@pytest.mark.parametrize(("passes", "calm", "stops"), [(1, 0.1, 2), (2, 0.1, 3), (0, 0.1, 1), (1, 0.001, None)])
def test_stops_when_stable_and_confident(passes, calm, stops):
    stability = Stability(passes, calm)
    reached = [stability.reached(torch.tensor([0, 1]), 0.01) for _ in range(4)]
    assert (reached.index(True) + 1 if True in reached else None) == stops


def test_a_change_starts_the_count_anew():
    stability = Stability(2, 1.0)
    seen = [stability.reached(torch.tensor([t]), 0.0) for t in (1, 1, 2, 2, 2)]
    assert seen == [False, False, False, False, True]


def test_entropy_leaves_out_what_is_forbidden():
    scores = torch.tensor([[0.0, 0.0, -torch.inf], [50.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert entropy(scores).tolist() == pytest.approx([math.log(2), 0.0, math.log(3)], abs=1e-6)


def run(policy, count=16, seed=3, temperature=0.0):
    model, prompt = tiny_model(seed), [PREFIX, *range(40, 52)]
    request = Request(Session(model.transformer.new_cache()), policy, Budget(count), temperature=temperature, seed=seed)
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt))
    request.forwards = 0
    decoder.decode(request, OPEN)
    return request


def unverified(**more):
    return Policy(**{"name": "x", "canvas": 16, "threshold": 0.9, "verify": Verify.OFF, "passes": 16} | more)


@pytest.mark.parametrize("commit", Commit)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_every_rule_fills_the_hole(commit, temperature):
    request = run(unverified(commit=commit), temperature=temperature)
    assert len(request.written) == 16 or END not in request.written
    assert request.forwards <= 17  # the last one writes KV
    assert run(unverified(commit=commit), temperature=temperature).written == request.written


@pytest.mark.parametrize(("passes", "most"), [(0, 4), (1, 1), (2, 2)])
@pytest.mark.parametrize("schedule", Schedule)
def test_a_schedule_takes_its_passes(passes, most, schedule):
    assert run(unverified(commit=Commit.SCHEDULE, passes=passes, schedule=schedule)).forwards <= most


def scripted(policy):
    """A model that has every token right at once, and is sure of none."""
    text, prompt = "return self.x + 1", [PREFIX, *b"def f():"]
    model = scripted_model(text, len(prompt), doubts=frozenset(range(40)))
    request = Request(Session(model.transformer.new_cache()), policy, Budget(len(text)))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt))
    request.forwards = 0
    assert decoder.decode(request, OPEN)[0] == text
    return request.forwards


def test_a_canvas_that_stays_as_it_is_is_done():
    """16 masks one at a time; or until it was the same twice, and then all of it."""
    slow = {"threshold": 1.0, "passes": 64, "canvas": 17}
    assert scripted(unverified(**slow)) == 17
    assert scripted(unverified(**slow, stable=2, calm=6.0)) == 3
    assert scripted(unverified(**slow, stable=2, calm=0.1)) == 17


def test_credit_spares_passes_where_nothing_changes():
    rules = (Commit.THRESHOLD, Commit.CREDIT)
    plain, credit = (scripted(unverified(threshold=0.02, passes=64, commit=rule)) for rule in rules)
    assert credit < plain
