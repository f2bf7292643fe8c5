"""Which corrector head an engine uses: a named one or it refuses, one that is found only where it fits."""

import logging

import pytest
import torch
from checkpoints import write_checkpoint

from remask.contract.errors import InputError, ModelError
from remask.contract.messages import CompletionRequest
from remask.engine.api import Engine, EngineOptions
from remask.engine.judge.corrector import FILE, Corrector, part_shapes, save_corrector
from remask.engine.models.adapter import digest_of

WIDTH, TAPS = 32, (0, 1)


@pytest.fixture
def base(tmp_path):
    return write_checkpoint(tmp_path / "base", "remask")


def write_head(path, model, **changes):
    parts = {n: torch.zeros(s) for n, s in part_shapes(2, WIDTH, 4).items()}
    head = Corrector(parts=parts, taps=TAPS, threshold=0.4, strict=0.9, base=digest_of(model))
    save_corrector(path, Corrector(**{f: getattr(head, f) for f in head.__slots__} | changes))
    return path


def load(base, **options):
    return Engine.load(EngineOptions(model=base, device="cpu", dtype="float32", cache=False, **options))


def test_a_head_beside_the_model_is_used(base):
    assert load(base).judges.corrector is None
    write_head(base / FILE, base)
    assert load(base).judges.corrector.taps == TAPS


def test_a_head_of_other_weights_that_is_only_found_is_left_alone(base, caplog):
    write_head(base / FILE, base, base="ab" * 32)
    with caplog.at_level(logging.WARNING):
        assert load(base).judges.corrector is None
    assert "made for other weights" in caplog.text


def test_a_named_head_has_to_fit(base, tmp_path):
    named = write_head(tmp_path / "mine.safetensors", base)
    assert load(base, corrector=named).judges.corrector.threshold == 0.4
    write_head(tmp_path / FILE, base, threshold=0.6)
    assert load(base, corrector=tmp_path).judges.corrector.threshold == 0.6
    write_head(named, base, base="ab" * 32)
    with pytest.raises(ModelError, match="made for other weights"):
        load(base, corrector=named)
    with pytest.raises(ModelError, match="cannot be read"):
        load(base, corrector=tmp_path / "none.safetensors")


def test_weights_without_causal_passes_have_no_head(tmp_path):
    other = write_checkpoint(tmp_path / "other", "sdar")
    write_head(other / FILE, other)
    assert load(other).judges.corrector is None
    with pytest.raises(InputError, match="reads causal verifying passes"):
        load(other, corrector=other / FILE)


def test_a_policy_that_wants_a_head_needs_one(base):
    ask = CompletionRequest(document="a", language="python", prefix="x = ", policy="parallel:remask=parser+corrector")
    with pytest.raises(InputError, match="wants a corrector head, and there is none"):
        load(base).complete(ask)
    write_head(base / FILE, base)
    judged, free = load(base).complete(ask), load(base).complete(ask)  # zeros: every token is as good as wrong
    assert judged == free or judged.text == free.text
    everything = CompletionRequest(document="a", language="python", prefix="x = ", policy="parallel:remask=all")
    (base / FILE).unlink()
    load(base).complete(everything)
