"""Kernels run in Triton's interpreter: on CPU tensors, one program at a time."""

import os

import pytest

os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined: before anything imports one

pytest.importorskip("triton", reason="Triton is not installed (remask[gpu])")


@pytest.fixture
def generator():
    import torch

    return torch.Generator().manual_seed(7)
