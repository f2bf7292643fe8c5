"""Which judges a request gets: by its policy, its purpose and its language."""

from dataclasses import replace

import pytest
from tiny import SPEC, tiny_model

from remask.contract.messages import CompletionRequest, Purpose, Reason
from remask.engine.decode.policies import policy_named
from remask.engine.decode.stop import StopRules
from remask.engine.judges import Judges, known
from remask.engine.models.spec import Layout

RULES = StopRules(Reason.BLOCK, "", lambda _: None)


def asked(**values):
    known_values = {"document": "a.py", "language": "python", "prefix": "x = f(", "suffix": "\n"}
    return CompletionRequest(**known_values | values)


def remasker(policy, model=None, **values):
    judges, request = Judges(model or tiny_model(), None), asked(**values)
    gate = judges.gate(request)
    names = judges.names(gate, request, thorough=True)
    return judges.remasker(gate, request, policy_named(policy, SPEC), names, RULES)


@pytest.mark.parametrize("policy", ["default", "search", "bounded", "parallel:remask=off"])
def test_what_is_verified_or_wants_none_has_no_judge(policy):
    assert remasker(policy) is None


@pytest.mark.parametrize(
    ("wanted", "judge", "guard", "falling"),
    [
        ("parser", True, True, False),
        ("names", True, False, False),
        ("confidence", False, False, True),
        ("parser+confidence", True, True, True),
        ("all", True, True, False),
    ],
)
def test_a_policy_names_its_judges(wanted, judge, guard, falling):
    made = remasker(f"parallel:remask={wanted}")
    assert (made.judge is not None, made.guard is not None, made.falling is not None) == (judge, guard, falling)


def test_without_a_grammar_nothing_reads_the_text():
    made = remasker("parallel", language="klingon")
    assert (made.judge, made.guard) == (None, None)
    assert not known("klingon")


@pytest.mark.parametrize("layout", [Layout.HOLE, Layout.SUFFIX_PREFIX])
def test_one_canvas_up_to_the_suffix_is_judged_with_it(layout):
    """A bracket may be open at the end of a beginning, but not before the rest of the file."""
    model = replace(tiny_model(), spec=replace(SPEC, layout=layout))
    made = remasker("parallel", model, prefix="x = ", suffix="\ndef f():\n    pass\n")
    found = made.judge.check("", ["(", "a"], [True, True])
    assert (found is not None) == (layout is Layout.HOLE)


def test_a_doubter_needs_a_head_and_names_are_judged_where_it_matters():
    judges, policy = Judges(tiny_model(), None), policy_named("search", SPEC)
    assert judges.doubter(asked(), policy) is None
    gate = judges.gate(asked())
    assert judges.names(gate, asked(name_facts=False), thorough=False) is None
    for more in ({"candidates": 2}, {"purpose": Purpose.FILL}, {"name_facts": True}):
        assert judges.names(gate, asked(**{"name_facts": False} | more), thorough=False) is not None
    assert judges.names(None, asked(candidates=2), thorough=True) is None
