"""Injected faults: what is broken, and what is counted."""

import pytest
from tiny import scripted_model, tiny_model

from remask.engine.api import Engine
from remask.engine.decode.policies import policy_named
from remask.engine.evaluation.faults import Fault, Report, inject, measure
from remask.engine.evaluation.infilling import describe
from remask.engine.evaluation.kept import Kept
from remask.engine.evaluation.metrics import parses
from remask.engine.evaluation.tasks import Task
from remask.engine.prompt import build_prompt

PREFIX, BODY, SUFFIX = "def f(x):\n    ", "y = (x + 1)\n    return y * (x + y)", "\n"
TASK = Task(name="f", prefix=PREFIX, suffix=SUFFIX, truth=BODY)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("block", [8, 16, 64])
def test_a_fault_breaks_a_file_that_parses_by_one_token_of_the_block(block, seed):
    model = tiny_model()
    (fault,) = inject(model, [TASK], block, 0.25, seed)
    task, tokens = fault.task, list(fault.tokens)
    assert task.prefix + task.truth + task.suffix == PREFIX + BODY + SUFFIX
    assert model.decode(tokens) == task.truth
    assert [i for i, (a, b) in enumerate(zip(fault.broken(), tokens, strict=True)) if a != b] == [fault.at]
    assert fault.wrong in tokens
    assert not parses("python", task.prefix + model.decode(fault.broken()) + task.suffix)
    assert fault.at not in fault.open
    assert len(fault.open) == round(0.25 * (len(tokens) - 1))
    assert [fault] == list(inject(model, [TASK], block, 0.25, seed))


def test_a_body_that_is_too_short_or_cannot_be_broken_gives_no_fault():
    tasks = [Task(name="a", prefix="x = ", suffix="\n", truth=truth) for truth in ("a + b", "aaaaaaaaaaaaaaaaa")]
    assert list(inject(tiny_model(), tasks, 32, 0.25, 0)) == []


def test_a_model_that_knows_better_writes_the_token_right():
    at = BODY.index("(")
    tokens = tuple(BODY.encode())
    fault = Fault(TASK, tokens, at, ord(")"), (at + 1,))
    model = scripted_model(BODY, len(build_prompt(tiny_model(), PREFIX, SUFFIX)))
    report = Report(seed=0, block=len(tokens), masked=0.1, faults=1, **describe(model))
    policy = policy_named("parallel", model.spec)
    values = measure(Engine(model), [fault], [policy], report).to_dict()
    rows = {(row["sees"], row["broken"]): row for row in values["rows"]}
    for sees in ("beginning", "file"):
        row = rows[sees, True]
        assert (row["found"], row["found_first"], row["right"], row["whole"], row["lost"]) == (1.0, 1.0, 1.0, 1.0, 0.0)
        assert row["by"] == {"parser": 1.0}
        assert 1 <= row["flagged"] <= 3
        clean = rows[sees, False]
        assert (clean["noticed"], clean["lost"], clean["whole"]) == (0.0, 0.0, 1.0)
    assert values["visible"] == 1.0
    assert values["languages"] == {"python": 1}


def test_what_is_kept_is_not_measured_again(tmp_path, monkeypatch):
    tokens = tuple(BODY.encode())
    at = BODY.index("(")
    fault = Fault(TASK, tokens, at, ord(")"), (at + 1,))
    model = scripted_model(BODY, len(build_prompt(tiny_model(), PREFIX, SUFFIX)))
    policy = policy_named("parallel", model.spec)

    def measured():
        report = Report(seed=0, block=len(tokens), masked=0.1, faults=1, **describe(model))
        return measure(Engine(model), [fault], [policy], report, kept=Kept(tmp_path / "kept", {})).to_dict()

    first = measured()

    def denoise(*_):
        raise AssertionError("done already")

    monkeypatch.setattr("remask.engine.evaluation.faults._denoised", denoise)
    assert measured() == first
