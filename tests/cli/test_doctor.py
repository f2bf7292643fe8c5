"""`remask doctor`: every check says what to do when it fails."""

import json
from types import SimpleNamespace

import pytest
from tiny import tiny_model

from remask.cli.doctor import run_checks
from remask.cli.main import run_command
from remask.contract.errors import ModelError
from remask.contract.messages import Reason
from remask.engine.api import Engine


def test_healthy_installation():
    checks = list(run_checks(lambda: Engine(tiny_model())))
    assert {c.name for c in checks} >= {"remask", "torch", "python", "languages", "cache folder", "model", "self-test"}
    assert all(c.ok or c.warning for c in checks)


def test_broken_model_and_folder_are_named_with_advice(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REMASK_CACHE_DIR", str(tmp_path / "file" / "below"))

    def load():
        raise ModelError("The weight shard x is damaged.", advice="Install Remask again.")

    failed = {c.name: c for c in run_checks(load) if not c.ok and not c.warning}
    assert set(failed) == {"cache folder", "model"}
    assert all(c.advice for c in failed.values())


@pytest.mark.parametrize("runs", [True, False])
def test_whether_the_c_pass_runs_is_said(monkeypatch, runs):
    library = SimpleNamespace(remask_kind=lambda: b"vnni") if runs else None
    monkeypatch.setattr("remask.engine.models.native.native_library", lambda: library)
    (check,) = (c for c in run_checks(lambda: Engine(tiny_model())) if c.name == "int8 on the CPU")
    assert check.ok is runs
    assert ("vnni" in check.detail) is runs
    assert check.warning or runs, "torch computes then: nothing is broken"
    assert check.advice or runs


@pytest.mark.model
def test_json(capsys):
    assert run_command(["doctor", "--json", "--reasons"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert set(report["reasons"]) == {reason.value for reason in Reason}
    assert all(report["reasons"].values())
    assert {"name", "ok", "detail", "advice", "warning"} == set(report["checks"][0])
