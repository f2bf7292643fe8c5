"""What the corrector head learns from: read as the engine reads, labelled as the truth says."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import MASK, PREFIX, SHAPE, SPEC, SUFFIX, random_weights
from training import END, fixed_network, network, split

from remask.engine.judge.corrector import normalise, signs_of
from remask.engine.models.passes import Pass
from remask.engine.models.transformer import Transformer
from remask.engine.training.batches import rows_of
from remask.engine.training.drafts import DraftOptions, Drafts, Kind

OPTIONS = DraftOptions(rows=2, block=4, canvases=12, clean=10)
TAPS = (0, 1)


def drafts(options=OPTIONS, rows=6):
    return Drafts(split(rows), fixed_network(), SPEC, TAPS, options)


def drafted(source, step=0):
    """A batch, its rows' numbers and its filled canvases."""
    batch, picked = source._batches.batch(step), rows_of(source._split, source._recipe, step, 0)
    return batch, picked, source.draft(batch, picked, np.random.default_rng(0), step)


def test_a_fixed_network_learns_nothing_and_computes_the_same():
    tokens, positions = torch.arange(97, 107)[None], torch.arange(10)[None]
    bias = torch.zeros(1, 1, 10, 10)
    frozen = fixed_network()
    assert not frozen.learned
    assert torch.equal(frozen.hidden(tokens, positions, bias)[0], network(rank=0).hidden(tokens, positions, bias)[0])


def test_the_same_seed_gives_the_same_tokens():
    first, second, other = (drafts(replace(OPTIONS, seed=s)).labelled(3) for s in (1, 1, 2))
    assert torch.equal(first.states, second.states)
    assert torch.equal(first.signs, second.signs)
    assert first.wrong.tolist() == second.wrong.tolist()
    assert first.states.shape != other.states.shape or not torch.equal(first.states, other.states)


def test_every_kind_is_there_and_labelled_by_the_truth():
    found = [drafts(replace(OPTIONS, planted=0.5)).labelled(step) for step in range(4)]
    kinds, wrong = (np.concatenate([getattr(f, n) for f in found]) for n in ("kind", "wrong"))
    assert set(kinds.tolist()) == set(Kind)
    assert not wrong[kinds == Kind.CLEAN].any()
    assert 0.2 < wrong[kinds == Kind.PLANTED].mean() < 0.7
    assert wrong[kinds == Kind.GREEDY].mean() > 0.5  # random weights know nothing
    assert 0.1 < wrong[kinds == Kind.PARTIAL].mean() < 0.9


def test_what_was_in_view_stays_and_no_mask_is_drafted():
    source = drafts()
    batch, _, canvases = drafted(source)
    inputs = batch.tokens[:, -12 * 4 :].reshape(2, 12, 4)
    visible = inputs[:, :, 1:] != MASK
    partial = canvases.kinds == Kind.PARTIAL
    shown = visible & partial[:, None]
    assert shown.any()
    assert (canvases.tokens[:, :, :-1] == canvases.truth[:, :, :-1])[shown].all()
    assert not (canvases.tokens == MASK).any()


def test_planted_errors_are_code_of_the_row():
    source = drafts(replace(OPTIONS, planted=1.0))
    _, picked, canvases = drafted(source)
    planted = canvases.tokens[:, canvases.kinds == Kind.PLANTED]
    assert not np.isin(planted, [PREFIX, SUFFIX, MASK, END]).any()
    for row, number in zip(planted, picked, strict=True):
        assert np.isin(row, split().tokens[number]).all()


def test_nothing_behind_an_end_or_a_draft_s_first_error_is_scored():
    source = drafts(replace(OPTIONS, block=8))
    _, picked, canvases = drafted(source)
    segments = split().segments[picked]
    checked = 0
    for r, c, i in np.argwhere(canvases.scored):
        at = canvases.anchors[r, c] + 1 + i
        assert canvases.truth[r, c, i] == split().tokens[picked[r], at]
        assert segments[r, at] == segments[r, canvases.anchors[r, c]]
        assert END not in canvases.tokens[r, c, :i]
        if canvases.kinds[c] in (Kind.GREEDY, Kind.SAMPLED):  # verifying cuts at the first wrong token
            assert (canvases.tokens[r, c, :i] == canvases.truth[r, c, :i]).all()
        checked += 1
    assert checked


def test_a_draft_is_read_as_the_engine_s_verifying_pass_reads_it():
    """States, signs and labels of every draft token equal those of the engine's own causal pass over it."""
    weights = random_weights()
    engine = Transformer(SHAPE, weights)
    source = drafts()
    batch, picked, canvases = drafted(source)
    found = source._read(batch, picked, canvases, np.random.default_rng(1))
    expected_signs, expected_last, labels = [], [], []
    for r in range(2):
        for c in range(12):
            anchor = int(canvases.anchors[r, c])
            start = anchor - int(batch.positions[r, anchor])
            tokens = [*batch.tokens[r, start : anchor + 1].tolist(), *canvases.tokens[r, c].tolist()]
            hidden = engine.forward(Pass.causal(tokens, 0, engine.device), engine.new_cache())
            before, own = hidden[anchor - start : -1], hidden[anchor - start + 1 :]
            signs = signs_of(engine.logits(before), torch.from_numpy(canvases.tokens[r, c]))
            keep = torch.from_numpy(canvases.scored[r, c])
            expected_signs.append(signs[keep])
            expected_last.append(normalise(own)[keep])
            labels += (canvases.tokens[r, c] != canvases.truth[r, c])[canvases.scored[r, c]].tolist()
    drafted_rows = torch.from_numpy(np.flatnonzero(found.kind != Kind.CLEAN))
    assert torch.allclose(found.signs[drafted_rows], torch.cat(expected_signs), atol=1e-4)
    assert torch.allclose(found.states[drafted_rows, -1].float(), torch.cat(expected_last), atol=5e-3)
    assert found.wrong[drafted_rows.numpy()].tolist() == labels


def test_a_row_without_code_has_no_clean_tokens():
    rows = split(2)
    rows.roles[:] = 1
    source = Drafts(rows, fixed_network(), SPEC, TAPS, OPTIONS)
    assert Kind.CLEAN not in source.labelled(0).kind


@pytest.mark.parametrize("kind", [Kind.SAMPLED, Kind.GREEDY])
def test_only_samples_change_with_the_seed(kind):
    first, second = (drafts(replace(OPTIONS, seed=0)) for _ in range(2))
    batch, picked, canvases = drafted(first)
    other = second.draft(batch, picked, np.random.default_rng(0), 99)
    same = (canvases.tokens == other.tokens)[:, canvases.kinds == kind].all()
    assert same == (kind is Kind.GREEDY)
