"""Planning by cost: its figures, its choice against a search, and a text that does not depend on it."""

import itertools
import json
import random

import pytest
from reference import reference_greedy
from tiny import END, MASK, PREFIX, SHAPE, SUFFIX, random_weights, tiny_model

from remask.contract.messages import Reason
from remask.contract.places import cache_dir
from remask.engine.decode import costs
from remask.engine.decode.costs import GUESS, SIZES, PassCosts, costs_of, measure
from remask.engine.decode.loop import Decoder
from remask.engine.decode.plan import Option, Planner
from remask.engine.decode.policies import POLICIES
from remask.engine.decode.rates import FADE, UNKNOWN, USUAL, WEIGHT, Rates
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
FLAT = PassCosts({1: 10.0, 24: 10.0})  # a GPU: a pass costs what it costs
STEEP = PassCosts({1: 10.0, 24: 240.0})  # every token costs as much as the first


@pytest.fixture(autouse=True)
def _nothing_measured(monkeypatch):
    monkeypatch.setattr(costs, "_MEASURED", {})


def test_costs_between_and_beyond_the_measured_sizes():
    table = PassCosts({1: 10.0, 4: 16.0, 2: 9.0})
    assert [table.ms(n) for n in (0, 1, 2, 3, 4, 6)] == pytest.approx([0, 10, 10, 13, 16, 22])
    assert table.per_row() == 2.0


def test_costs_are_measured_once_and_kept(monkeypatch):
    model, calls = tiny_model(), []
    monkeypatch.setattr(costs, "measure", lambda *a: calls.append(a) or measure(*a))
    first = costs_of(model, patient=True)
    assert costs_of(model, patient=True) is first
    costs._MEASURED.clear()  # another process
    assert costs_of(model, patient=False).to_dict() == first.to_dict()
    assert len(calls) == 1
    (file,) = cache_dir().glob("costs-*")
    assert json.loads(file.read_text()).keys() == {str(size) for size in SIZES}


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '{"1": 3, "2": 4}', *(json.dumps(dict.fromkeys(map(str, SIZES), ms)) for ms in ("x", -1, 1e999))],
)
def test_a_broken_file_and_one_of_other_sizes_are_measured_again(text):
    model = tiny_model()
    costs_of(model, patient=True)
    (file,) = cache_dir().glob("costs-*")
    good = file.read_text()
    file.write_text(text)
    costs._MEASURED.clear()
    costs_of(model, patient=True)
    assert json.loads(file.read_text()).keys() == json.loads(good).keys()


@pytest.mark.parametrize(("patient", "spent"), [(False, False), (True, True)])
def test_without_time_a_guess_serves_and_is_not_kept(patient, spent):
    table = costs_of(tiny_model(), patient, lambda: spent)
    assert table.to_dict() == PassCosts(GUESS).to_dict()
    assert not list(cache_dir().glob("costs-*"))
    assert not costs._MEASURED


def test_a_disk_that_refuses_does_not_matter(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REMASK_CACHE_DIR", str(tmp_path / "file"))
    assert costs_of(tiny_model(), patient=True).ms(1) > 0


@pytest.mark.parametrize("call", ["json.dump", "os.replace"])
def test_a_full_disk_keeps_nothing_unfinished(monkeypatch, call):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"remask.engine.decode.costs.{call}", full)
    assert costs_of(tiny_model(), patient=True).ms(1) > 0
    assert not list(cache_dir().glob("costs-*"))


def test_rates_start_as_usual_follow_what_is_seen_and_fade_back():
    rates = Rates()
    assert rates.survival("canvas", 3) == pytest.approx([1, 0.95, 0.95 * 0.5, 0.95 * 0.25])
    assert rates.rate("something new", 0) == UNKNOWN[0]
    for _ in range(3):
        rates.seen("canvas", 4, 1)  # the first is kept, the second is not, the others were not reached
    counts = sum(FADE**i for i in range(3))
    assert rates.rate("canvas", 0) == pytest.approx((counts + WEIGHT * 0.95) / (counts + WEIGHT))
    assert rates.rate("canvas", 1) == pytest.approx(WEIGHT * 0.5 / (counts + WEIGHT))
    assert rates.rate("canvas", 2) == USUAL["canvas"][1]
    low = rates.rate("canvas", 1)
    for _ in range(1000):
        rates.seen("lookup-1", 1, 0)
    assert low < rates.rate("canvas", 1)
    assert rates.rate("canvas", 1) == pytest.approx(USUAL["canvas"][1], abs=0.01)


def naive_worth(planner, option, length, branches, row):
    """Expected tokens now and a round later, less what the time is worth."""
    kept = planner.rates.survival(option.kind, length)
    later = 0.0
    for place, masks in enumerate(branches):
        chance = kept[place] - (kept[place + 1] if place < length else 0.0)
        later += chance * planner._wanted * sum(planner.rates.survival("single_pass", masks)[1:])
    rows = 1 + length + sum(m + 1 for m in branches if m)
    return sum(kept) + later - planner.pace * (option.prices[length] + planner.costs.ms(rows))


@pytest.mark.parametrize("seed", range(12))
def test_the_best_plan_is_the_one_a_search_finds(seed):
    """Costs on one line, so that a row costs the same everywhere: then the branches are independent of each other."""
    draw = random.Random(seed)
    planner = Planner(PassCosts({1: 10.0, 24: 10.0 + 23 * draw.choice([0.05, 0.3, 1.0])}))
    for kind in ("lookup-3", "single_pass", "canvas"):
        for _ in range(30):
            planner.seen(kind, 3, draw.randint(0, 3), 12.0)
    options = [
        Option("none", 0, [0.0]),
        Option("lookup-3", draw.randint(0, 3), [0.0] * 4),
        Option("single_pass", draw.randint(0, 2), [0.0] * 3),
        Option("canvas", 3, [0.0, 10.0, 10.5, 11.0]),
    ]
    size, ahead = draw.randint(0, 5), draw.randint(0, 2)
    plan = planner.best(options, size, ahead)
    found = max(
        naive_worth(planner, option, length, branches, planner.costs.per_row())
        for option in options
        for length in range(min(option.length, size) + 1)
        for branches in itertools.product(range(ahead + 1), repeat=length + 1)
        if all(m <= max(0, size - j - 1) for j, m in enumerate(branches))
    )
    assert plan.worth == pytest.approx(found)
    worth = naive_worth(planner, options[plan.option], plan.length, plan.tails, planner.costs.per_row())
    assert worth == pytest.approx(found)
    assert plan.length <= min(options[plan.option].length, size)


def test_where_rows_cost_nothing_everything_is_drafted():
    planner = Planner(FLAT)
    plan = planner.best([Option("none", 0, [0.0]), Option("lookup-3", 8, [0.0] * 9)], 40, 7)
    assert (plan.option, plan.length, plan.tails) == (1, 8, (7,) * 9)


def test_where_every_row_costs_a_pass_nothing_is_drafted():
    planner = Planner(STEEP)
    options = [Option("none", 0, [0.0]), Option("lookup-1", 2, [0.0] * 3), Option("canvas", 4, [0, 10, 20, 30, 40])]
    plan = planner.best(options, 40, 3)
    assert (plan.option, plan.length, plan.tails) == (0, 0, (0,))


def test_many_rows_are_read_where_only_the_first_ones_cost():
    """A processor whose cost jumps once and is flat behind that: the average row's price would refuse them."""
    planner = Planner(PassCosts({1: 10.0, 2: 14.0, 24: 14.5, 48: 100.0}))
    assert planner.best([Option("none", 0, [0.0])], 40, 7).tails > (3,)


def test_other_figures_in_another_unit_change_no_plan():
    """A guess is for another machine: only its ratios count, and so for the pace that was reached with it."""
    table = {1: 10.0, 8: 14.0, 24: 30.0}
    options = [Option("none", 0, [0.0]), Option("lookup-2", 6, [0.0] * 7)]
    planner = Planner(PassCosts(table))
    for _ in range(5):
        planner.seen("lookup-2", 4, 2, 12.0)
    before = planner.best(options, 40, 5)
    planner.replace_costs(PassCosts({size: 7 * ms for size, ms in table.items()}))
    after = planner.best(options, 40, 5)
    assert (before.option, before.length, before.tails) == (after.option, after.length, after.tails)
    assert after.worth == pytest.approx(before.worth)


def test_a_source_that_is_always_wrong_is_left_alone_and_tried_again_some_day():
    planner = Planner(PassCosts({1: 10.0, 24: 20.0}))
    options = [Option("none", 0, [0.0]), Option("lookup-2", 4, [0.0] * 5)]
    drafted = []
    for _ in range(400):
        plan = planner.best(options, 40, 0)
        drafted.append(plan.length > 0)
        planner.seen(options[plan.option].kind, plan.length, 0, plan.ms)
    assert all(drafted[:3])
    assert 0 < sum(drafted[100:]) < 150


def run(model, prompt, limit=24, **budget):
    request = Request(Session(model.transformer.new_cache()), POLICIES["auto"], Budget(limit, **budget))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt))
    return decoder.decode(request, OPEN), request


@pytest.mark.parametrize("table", [FLAT, STEEP, PassCosts(GUESS)])
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_never_changes_the_text(seed, table, monkeypatch):
    monkeypatch.setattr("remask.engine.decode.loop.costs_of", lambda *_: table)
    prompt = [SUFFIX, *[(seed * 31 + 7 * i * i) % 11 + 90 for i in range(12)], PREFIX, *range(90, 99)]
    _, request = run(tiny_model(seed), prompt, 40)
    want = reference_greedy(random_weights(seed=seed), SHAPE, prompt, 40, END, [MASK, PREFIX, SUFFIX])
    assert request.written == want
    assert table is not FLAT or request.forwards < len(want)


def test_a_decoder_calibrates_before_it_is_asked(monkeypatch):
    decoder = Decoder(tiny_model())
    decoder.calibrate()
    assert decoder._planner.costs.to_dict() != PassCosts(GUESS).to_dict()
