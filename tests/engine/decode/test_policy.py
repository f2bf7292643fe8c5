"""Policies: what is refused, and what their fields say together."""

import pytest

from remask.contract.errors import InputError
from remask.engine.decode.policy import Policy, Verify


@pytest.mark.parametrize(
    "bad",
    [{"canvas": -1}, {"canvas": 1000}, {"threshold": 1.1}, {"threshold": -0.1}, {"passes": -1}],
)
def test_impossible_policies_are_refused(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        Policy(**{"name": "x", "canvas": 4, "threshold": 0.5, "passes": 1, "verify": Verify.EXACT} | bad)


def test_no_canvas_needs_verification():
    with pytest.raises(InputError, match="canvas"):
        Policy(name="x", canvas=0, threshold=0.5, passes=1, verify=Verify.OFF)


@pytest.mark.parametrize(
    ("remask", "judges"),
    [
        ("off", set()),
        ("parser", {"parser"}),
        ("names+confidence", {"names", "confidence"}),
        ("all", {"parser", "names", "corrector"}),
    ],
)
def test_judges_are_joined(remask, judges):
    assert Policy(name="x", canvas=4, verify=Verify.OFF, remask=remask).judges == judges


@pytest.mark.parametrize(
    ("fields", "exact"),
    [
        ({}, True),
        ({"verify": Verify.OFF}, False),
        ({"verify": Verify.BOUNDED}, False),
        ({"branches": 4}, False),
        ({"repetition": 1.1}, False),
    ],
)
def test_what_promises_the_text_of_one_token_a_pass(fields, exact):
    assert Policy(**{"name": "x", "canvas": 4} | fields).exact is exact
