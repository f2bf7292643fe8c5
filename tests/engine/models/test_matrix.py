"""Matrices of 8-bit rows: read, multiplied, picked from and laid below each other as the floats they stand for."""

import pytest
import torch
from fake_card import Card, OnCard
from safetensors.torch import save_file
from tiny import SHAPE, random_weights

from remask.contract.errors import InputError
from remask.engine.models import model
from remask.engine.models.checkpoint import quantise, read_weights
from remask.engine.models.drafting import TorchDraft
from remask.engine.models.lowrank import LowRank
from remask.engine.models.matrix import FP8, Rows, below, matrix_of, picked, product

CPU, CARD = torch.device("cpu"), torch.device("cuda")
NAME = "model.layers.0.mlp.up_proj.weight"
kinds = pytest.mark.parametrize("kind", [torch.int8, FP8], ids=["int8", "fp8"])


def pair(kind, out=7, width=12, seed=0):
    matrix = torch.randn(out, width, generator=torch.Generator().manual_seed(seed))
    rows, scale = quantise(matrix, dtype=kind)
    return Rows(rows, scale), rows.float() * scale[:, None], matrix


@kinds
def test_rounding_is_as_fine_as_the_dtype(kind):
    _, wide, matrix = pair(kind, 5, 400)
    steps = {torch.int8: matrix.abs().amax(1, keepdim=True) / 127 / 2, FP8: matrix.abs() / 16 + 1e-3}[kind]
    assert ((wide - matrix).abs() <= steps * 1.001).all()
    assert not quantise(torch.zeros(2, 3), dtype=kind)[0].float().any()


@kinds
def test_products_and_rows(kind):
    rows, wide, _ = pair(kind)
    x, bias = torch.randn(3, 12), torch.randn(7)
    torch.testing.assert_close(product(x, rows, bias), x @ wide.T + bias)
    torch.testing.assert_close(product(x, rows), x @ wide.T)
    index = torch.tensor([[6, 0], [3, 3]])
    assert torch.equal(picked(rows, index, torch.float32), wide[index])
    assert picked(rows, torch.tensor(2), torch.bfloat16).shape == (12,)


@kinds
def test_below_each_other(kind):
    parts = [pair(kind, out, seed=out) for out in (2, 3)]
    both = below(*(rows for rows, _, _ in parts))
    assert isinstance(both, Rows)
    assert torch.equal(both.values.float() * both.scale[:, None], torch.cat([wide for _, wide, _ in parts]))


@kinds
@pytest.mark.parametrize("stored", ["floats", "int8"])
def test_a_checkpoint_is_read_as_eight_bits(tmp_path, kind, stored):
    weights = random_weights()
    if stored == "int8":
        weights[NAME], weights[f"{NAME}_scale"] = quantise(weights[NAME])
    save_file(weights, tmp_path / "model.safetensors")
    read = read_weights(tmp_path, SHAPE, dtype=kind, device=CPU)
    assert read[NAME].dtype == kind
    assert read[f"{NAME}_scale"].dtype == read["model.norm.weight"].dtype == torch.float32
    want = weights[NAME].float() * weights.get(f"{NAME}_scale", torch.ones(1))[:, None]
    got = picked(matrix_of(read, NAME), torch.arange(len(want)), torch.float32)
    assert (got - want).norm() < 0.04 * want.norm()
    assert stored == "floats" or kind == FP8 or torch.equal(got, want)


@kinds
def test_updates_are_merged_before_rounding(tmp_path, kind):
    weights = random_weights()
    save_file(weights, tmp_path / "model.safetensors")
    out, width = weights[NAME].shape
    update = LowRank(torch.randn(2, width), torch.randn(out, 2))
    read = read_weights(tmp_path, SHAPE, dtype=kind, device=CPU, updates={NAME: [update]})
    want = weights[NAME] + update.b @ update.a
    got = picked(matrix_of(read, NAME), torch.arange(out), torch.float32)
    assert (got - want).norm() < 0.04 * want.norm()


def card(monkeypatch, *, kernels=True, capability=(9, 0)):
    monkeypatch.setattr(model, "kernels_run", lambda _: kernels)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)


def test_eight_bits_on_a_card(monkeypatch):
    card(monkeypatch)
    assert model.choose_dtype("int8", CARD) == torch.int8
    assert model.choose_dtype("fp8", CARD) == FP8
    assert model.choose_dtype("auto", CARD) == torch.bfloat16
    card(monkeypatch, capability=(8, 6))
    assert model.choose_dtype("int8", CARD) == torch.int8
    with pytest.raises(InputError, match=r"8\.9 or newer"):
        model.choose_dtype("fp8", CARD)
    card(monkeypatch, kernels=False, capability=(7, 5))
    for wanted in ("int8", "fp8"):
        with pytest.raises(InputError, match="own kernels"):
            model.choose_dtype(wanted, CARD)


def test_fp8_is_not_for_a_processor():
    with pytest.raises(InputError, match="fp8 needs a card"):
        model.choose_dtype("fp8", CPU)


def small_head(width=16, inner=4):
    generator = torch.Generator().manual_seed(1)
    sizes = {"state": (2 * inner + width, width), "input": (2 * inner + width, width), "output": (width, inner)}
    tensors = {name: torch.randn(size, generator=generator) for name, size in sizes.items()}
    return tensors | {"norm": torch.ones(width), "tokens": torch.arange(5, 15)}, torch.randn(width, generator=generator)


@pytest.mark.parametrize("sure", [0.0, 0.3, 0.9, 1.0])
def test_a_draft_head_waits_for_a_card_once_and_drafts_the_same(sure):
    tensors, hidden = small_head()
    _, wide, _ = pair(torch.int8, 20, 16)
    wide = wide * 3
    want = TorchDraft(tensors, wide, wide[5:15])(hidden, 3, 5, sure)
    with Card() as card:
        there = {name: tensor.as_subclass(OnCard) for name, tensor in tensors.items()}
        on_card = wide.as_subclass(OnCard)
        draft = TorchDraft(there, on_card, on_card[5:15])
        before = len(card.waits)
        got = draft(hidden.as_subclass(OnCard), 3, 5, sure)
        assert card.waits[before:] == ["cpu"]
    assert got == want
    assert len(want[0]) == 5 if sure == 0.0 else 1 <= len(want[0]) <= 5
    assert TorchDraft(tensors, wide, wide[5:15])(hidden, 3, 0, sure) == ([], [])


@kinds
def test_a_draft_head_reads_rows_of_eight_bits(kind):
    tensors, hidden = small_head()
    rows, wide, _ = pair(kind, 20, 16)
    drafts = [TorchDraft(tensors, e, wide[5:15])(hidden, 3, 4, 0.0) for e in (rows, wide)]
    assert drafts[0][0] == drafts[1][0]
