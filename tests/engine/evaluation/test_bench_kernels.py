"""`remask bench kernels` where there is no card."""

import pytest
import torch

from remask.cli.main import run_command
from remask.contract.errors import InputError
from remask.engine.evaluation.bench_kernels import bench_kernels


def test_a_processor_is_refused():
    with pytest.raises(InputError, match="do not run on cpu"):
        bench_kernels(torch.device("cpu"))


def test_the_command_says_so(capsys):
    assert run_command(["bench", "kernels", "--device", "cpu"]) == 2
    assert "do not run on cpu" in capsys.readouterr().err
