"""Kernels run in Triton's interpreter (see the conftest above): on CPU tensors, one program at a time."""

import pytest

pytest.importorskip("triton", reason="Triton is not installed (remask[gpu])")


@pytest.fixture
def generator():
    import torch

    return torch.Generator().manual_seed(7)
