"""A keystroke, warm and cold: tokens are counted exactly, time is only there."""

from dataclasses import replace

import pytest
from tiny import SHAPE, SPEC, tiny_model

from remask.contract.errors import InputError
from remask.engine.evaluation.keystroke import bench_keystroke, steps

MODEL = tiny_model(spec=replace(SPEC, shape=replace(SHAPE, max_positions=4096)))


def test_a_keystroke_runs_its_own_token_and_a_reopened_file_none(tmp_path):
    advanced = []
    report = bench_keystroke(
        MODEL, tmp_path, contexts=(512, 1024), keys=3, colds=2, max_tokens=4, advance=lambda: advanced.append(1)
    ).to_dict()
    assert len(advanced) == steps((512, 1024), 3, 2)
    assert [(row["context"], row["start"], row["n"]) for row in report["rows"]] == [
        (context, start, n)
        for context in (512, 1024)
        for start, n in (("cold", 2), ("warm", 3), ("host", 2), ("reopened", 2))
    ]
    for row in report["rows"]:
        assert row["run"] == (row["tokens"] - 1 if row["start"] == "cold" else 0)
        assert row["context"] * 0.75 < row["tokens"] < row["context"]
        assert row["total_ms"] >= row["prompt_ms"] > 0
        assert row["mb"] == round(row["tokens"] * 2 * 2 * 2 * 8 * 4 / 1e6, 1) > 0
    assert report["disk_mb"] > 0


@pytest.mark.parametrize("context", [100, 5000])
def test_a_context_that_the_model_does_not_know_is_refused(context, tmp_path):
    with pytest.raises(InputError, match=f"context of {context} tokens is not between"):
        bench_keystroke(MODEL, tmp_path, contexts=(context,))
