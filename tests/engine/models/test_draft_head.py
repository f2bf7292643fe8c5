"""The draft head: formulas against plain loops, its work in int8 and floats against the formulas, and its files."""

import pytest
import torch
from safetensors.torch import save_file
from tiny import SHAPE, VOCAB, random_weights

from remask.contract.errors import InputError, ModelError
from remask.engine.models.checkpoint import quantise
from remask.engine.models.draft_head import FILE, advance, metadata_of, read_head, readout, rms, shapes, take_in
from remask.engine.models.drafting import DraftHead, find_draft_head
from remask.engine.models.native import native_library

compiled = pytest.mark.skipif(native_library() is None, reason="needs a C compiler and integer dot products")
WEIGHTS = random_weights()
EMBEDDING = WEIGHTS["model.embed_tokens.weight"]


def tensors_of(listed=40, inner=24, seed=1):
    generator = torch.Generator().manual_seed(seed)
    sizes = shapes(SHAPE.width, inner, listed)
    made = {n: torch.randn(s, generator=generator) / s[-1] ** 0.5 for n, s in sizes.items()}
    return made | {"tokens": torch.arange(60, 60 + listed), "norm": torch.ones(SHAPE.width)}


def test_a_step_equals_its_formula():
    weights = {n: torch.randn(s) for n, s in shapes(8, 3, 5).items()}
    state, embedded = torch.randn(8), torch.randn(8)

    def norm(v):
        return v / (sum(float(x) ** 2 for x in v) / len(v) + 1e-6) ** 0.5

    parts = weights["state"] @ norm(state) + weights["input"] @ norm(embedded)
    gated = torch.stack([parts[i] / (1 + torch.exp(-parts[i])) * parts[3 + i] for i in range(3)])
    expected = state + parts[6:] + weights["output"] @ gated
    assert torch.allclose(advance(state, take_in(embedded, weights), weights), expected, atol=1e-4)
    assert torch.allclose(readout(expected, weights), norm(expected) * weights["norm"], atol=1e-4)


def plainly(tensors, embedding, hidden, token, size):
    """What a head says by its formulas: probabilities over the short list, step by step."""
    state, rows = rms(hidden), []
    for _ in range(size):
        state = advance(state, take_in(embedding[token], tensors), tensors)
        rows.append((embedding[tensors["tokens"]] @ readout(state, tensors)).softmax(0))
        token = int(tensors["tokens"][rows[-1].argmax()])
    return rows


def int8_weights():
    rows, scale = quantise(EMBEDDING)
    return {"model.embed_tokens.weight": rows, "model.embed_tokens.weight_scale": scale}


@pytest.mark.parametrize("kind", ["float32", pytest.param("int8", marks=compiled)])
def test_it_drafts_what_the_formulas_say(kind):
    weights, embedding = WEIGHTS, EMBEDDING
    if kind == "int8":
        weights = int8_weights()
        embedding = weights["model.embed_tokens.weight"].float() * weights["model.embed_tokens.weight_scale"][:, None]
    for seed in range(5):
        tensors = tensors_of(seed=seed)
        hidden = torch.randn(SHAPE.width, generator=torch.Generator().manual_seed(seed))
        guess = DraftHead(tensors, weights).guess(hidden, 65, 4)
        rows = plainly(tensors, embedding, hidden, 65, 4)
        tolerance = 1e-4 if kind == "float32" else 0.05
        assert guess.tokens == [int(tensors["tokens"][row.argmax()]) for row in rows]
        assert guess.chances == pytest.approx([float(row.max()) for row in rows], abs=tolerance)
        assert guess.others == []


def test_it_ends_where_it_is_not_sure_and_names_second_choices():
    tensors, hidden = tensors_of(), torch.randn(SHAPE.width, generator=torch.Generator().manual_seed(0))
    head, rows = DraftHead(tensors, WEIGHTS), plainly(tensors, EMBEDDING, hidden, 65, 6)
    chances = torch.stack([row.max() for row in rows]).cumprod(0)
    guess = head.guess(hidden, 65, 6, sure=float(chances[2]) + 1e-6, other=0.0)
    assert len(guess.tokens) == 3
    expected = []
    for place, row in enumerate(rows[:3]):
        before = float(chances[place - 1]) if place else 1.0
        expected += [(place, int(tensors["tokens"][at]), before * float(row[at])) for at in row.topk(3).indices[1:]]
    assert [o[:2] for o in guess.others] == [e[:2] for e in expected]
    assert [o[2] for o in guess.others] == pytest.approx([e[2] for e in expected], abs=1e-4)
    line = sorted(e[2] for e in expected)[2]
    assert len(head.guess(hidden, 65, 3, other=line + 1e-6).others) == len(expected) - 3


def test_the_file_that_is_named_goes_before_those_beside_the_weights(tmp_path):
    base, adapter, other = (tmp_path / name for name in ("base", "adapter", "other"))
    for folder in (base, adapter, other):
        folder.mkdir()
    assert find_draft_head(None, [adapter, base]) is None
    for folder in (base, adapter, other):
        (folder / FILE).touch()
    assert find_draft_head(None, [adapter, base]) == adapter / FILE
    assert find_draft_head(other, [adapter, base]) == find_draft_head(other / FILE, [adapter]) == other / FILE
    with pytest.raises(InputError, match="no draft head"):
        find_draft_head(tmp_path / "none", [adapter, base])


@pytest.mark.parametrize("change", ["width", "format", "tokens", "missing", "bytes"])
def test_a_head_that_does_not_fit_is_refused(tmp_path, change):
    tensors = {n: torch.zeros(s) for n, s in shapes(SHAPE.width, 4, 3).items()}
    tensors["tokens"] = torch.arange(3)
    metadata = metadata_of({})
    if change == "width":
        tensors["norm"] = torch.zeros(5)
    if change == "format":
        metadata["format"] = "0"
    if change == "tokens":
        tensors["tokens"] = torch.tensor([1, 2, VOCAB])
    if change == "missing":
        del tensors["input"]
    save_file(tensors, tmp_path / FILE, metadata)
    if change == "bytes":
        (tmp_path / FILE).write_bytes(b"not a file")
    with pytest.raises(ModelError, match="draft head"):
        read_head(tmp_path / FILE, SHAPE.width, VOCAB)


def test_a_head_whose_checksum_differs_is_refused(tmp_path):
    save_file(tensors_of(), tmp_path / FILE, metadata_of({}))
    assert len(DraftHead.load(tmp_path / FILE, SHAPE, WEIGHTS).tokens) == 40
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  {FILE}\n")
    with pytest.raises(ModelError, match="checksum"):
        DraftHead.load(tmp_path / FILE, SHAPE, WEIGHTS)
