"""Policies by name: parameters, and which checkpoint can be decoded by which."""

from dataclasses import replace

import pytest
from tiny import SPEC

from remask.contract.errors import InputError
from remask.engine.decode.policies import POLICIES, policy_named
from remask.engine.decode.policy import Verify
from remask.engine.models.spec import Regime


def test_unknown_policy_names_the_known_ones():
    with pytest.raises(InputError, match="autoregressive"):
        policy_named("greedy", SPEC)


def test_weights_without_a_causal_reading_do_not_verify():
    with pytest.raises(InputError, match="not trained to be read causally"):
        policy_named("autoregressive", replace(SPEC, verifies=False))


def test_default_is_the_checkpoints_own():
    assert policy_named("default", replace(SPEC, policy="parallel")) is POLICIES["parallel"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("single_pass:canvas=6", {"canvas": 6, "draft": "single_pass"}),
        ("bounded:ratio=0.25,draft=lookup", {"ratio": 0.25, "draft": "lookup", "verify": Verify.BOUNDED}),
        ("default:canvas=3,threshold=0.5,passes=2", {"canvas": 3, "threshold": 0.5, "passes": 2}),
        ("autoregressive:draft=lookup+canvas,canvas=2", {"sources": ("lookup", "canvas")}),
        ("default:verify=off", {"verifies": False}),
    ],
)
def test_parameters_change_a_named_policy(text, expected):
    policy = policy_named(text, SPEC)
    assert policy.name == text
    assert {field: getattr(policy, field) for field in expected} == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bounded:ratio=2", "ratio is 0.001 to 1, not 2"),
        ("parallel:threshold=1.5", "threshold is 0 to 1, not 1.5"),
        ("parallel:canvas=0", "without a canvas"),
        ("bounded:ratio=nan", "ratio is 0.001 to 1, not nan"),
        ("bounded:ratio=", "ratio is a number, not ''"),
        ("default:canvas=many", "canvas is a number, not 'many'"),
        ("default:canvas=-1", "canvas is 0 to 256"),
        ("default:size=3", "no 'size'; it has canvas, threshold"),
        ("default:name=x", "no 'name'"),
        ("default:verify=maybe", "one of off, bounded, exact"),
        ("default:draft=oracle", "not 'oracle'"),
        ("parallel:remask=eyes", "remask is off, all, or parser, confidence, names, corrector joined with a \\+"),
        ("parallel:remask=parser+all", "not 'parser\\+all'"),
        ("parallel:remask=", "not ''"),
        ("parallel:doubt=1.5", "doubt is 0 to 1"),
        ("parallel:surer=2", "surer is 0 to 1"),
        ("parallel:fall=-1", "fall is 0 to 1"),
        ("single_pass:canvas=1", "2 or more"),
        ("lookup:lookup=0", "lookup is 1 to 256"),
        ("autoregressive:verify=off", "without a canvas"),
        ("greedy:canvas=2", "no policy 'greedy'"),
    ],
)
def test_wrong_parameters_are_refused_by_name_and_range(text, says):
    with pytest.raises(InputError, match=says):
        policy_named(text, SPEC)


def test_only_causal_checkpoints_draft_in_a_single_pass():
    with pytest.raises(InputError, match="in one pass"):
        policy_named("single_pass", replace(SPEC, regime=Regime.STRICT_CAUSAL))


def test_a_checkpoints_own_policy_may_have_parameters():
    policy = policy_named("default:canvas=5", replace(SPEC, policy="lookup:lookup=4,canvas=3"))
    assert (policy.name, policy.draft, policy.lookup, policy.canvas) == ("default:canvas=5", "lookup", 4, 5)
    assert policy_named("default", replace(SPEC, policy="lookup:lookup=4")).lookup == 4
