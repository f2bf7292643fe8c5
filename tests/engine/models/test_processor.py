"""REMASK_THREADS: taken, or refused in one sentence."""

import pytest
import torch

from remask.contract.errors import InputError
from remask.engine.models.processor import set_threads


@pytest.fixture(autouse=True)
def _as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("wanted", ["0", "-1", "many", "1.5", "9999999999999", "1025", "٣"])
def test_nonsense_is_refused(monkeypatch, wanted):
    monkeypatch.setenv("REMASK_THREADS", wanted)
    with pytest.raises(InputError, match="REMASK_THREADS is a number from 1 to 1024"):
        set_threads()


def test_a_number_is_taken_and_nothing_leaves_things_alone(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("REMASK_THREADS", " 3 ")
    set_threads()
    assert torch.get_num_threads() == 3
    monkeypatch.setenv("REMASK_THREADS", "")
    set_threads()
    assert torch.get_num_threads() == 3


def test_no_more_threads_run_than_there_are_cores_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setenv("REMASK_THREADS", "64")
    set_threads()
    assert torch.get_num_threads() == 2
    assert "64" in caplog.text
    assert "2 cores" in caplog.text
