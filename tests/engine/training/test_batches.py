"""Batches: what is read, who sees whom, and what is scored, against plain loops."""

import dataclasses

import numpy as np
import pytest
from tiny import MASK
from training import RECIPE, batches, split

from remask.engine.training.batches import Batches, rows_of, visible

PAD = 65_535


def naive_visible(segments, anchors, block):
    width = len(segments)
    size = width + len(anchors) * block
    seen = np.zeros((size, size), bool)
    for i in range(width):
        for j in range(i + 1):
            seen[i, j] = i == j or (segments[i] == segments[j] and segments[i] != PAD)
    for c, anchor in enumerate(anchors):
        own = range(width + c * block, width + (c + 1) * block)
        for i in own:
            for j in range(anchor):
                seen[i, j] = segments[j] == segments[anchor]
            for j in own:
                seen[i, j] = True
    return seen


def test_visibility_equals_plain_loops():
    segments = split().segments[0].astype(np.int64)
    anchors = np.array([0, 3, 9, 20, 21])
    assert (visible(segments, anchors, 4) == naive_visible(segments, anchors, 4)).all()


@pytest.mark.parametrize("step", range(5))
def test_a_batch_depends_on_the_seed_and_the_step_alone(step):
    first, again = batches().batch(step), batches().batch(step)
    other = Batches(split(), dataclasses.replace(RECIPE, seed=1), MASK).batch(step)
    for field in dataclasses.fields(first):
        assert (getattr(first, field.name) == getattr(again, field.name)).all()
    assert (first.tokens != other.tokens).any()


def test_shapes_are_the_same_for_every_step():
    shapes = {tuple(getattr(b, f.name).shape for f in dataclasses.fields(b)) for b in map(batches().batch, range(12))}
    assert len(shapes) == 1


def test_every_row_is_read_once_an_epoch():
    data = split(rows=6)
    epochs = [[int(r) for s in range(3 * e, 3 * e + 3) for r in rows_of(data, RECIPE, s, 0)] for e in range(3)]
    assert all(sorted(epoch) == list(range(6)) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_causal_rows_predict_the_next_token_of_their_own_example():
    data, recipe = split(), dataclasses.replace(RECIPE, causal_rows=0)
    batch = Batches(data, recipe, MASK).batch(0)
    size = batch.tokens.shape[1]
    picked = rows_of(data, recipe, 0, 0)
    expected = {}
    for r, row in enumerate(picked):
        for i in range(data.tokens.shape[1] - 1):
            same = data.segments[row, i] == data.segments[row, i + 1] != PAD
            role, own = int(data.roles[row, i + 1]), int(data.roles[row, i])
            if same and (role == 3 or (role == 2 and own == 2)):
                weight = recipe.middle_weight if role == 3 else recipe.prefix_weight
                expected[r * size + i] = (int(data.tokens[row, i + 1]), weight)
    scored = batch.weights > 0
    found = dict(
        zip(
            batch.rows[scored].tolist(),
            zip(batch.targets[scored].tolist(), batch.weights[scored].tolist(), strict=True),
            strict=True,
        )
    )
    assert found == expected


def test_all_middles_are_scored_before_any_prefix():
    recipe = dataclasses.replace(RECIPE, causal_rows=8)
    batch = Batches(split(), recipe, MASK).batch(0)
    assert (batch.weights == recipe.middle_weight).all()


def test_a_canvas_reads_the_truth_or_masks_and_predicts_the_truth():
    data, recipe = split(), dataclasses.replace(RECIPE, wrong=0.0)
    seen = set()
    for step in range(6):
        batch = Batches(data, recipe, MASK).batch(step)
        picked, width = rows_of(data, recipe, step, 0), data.tokens.shape[1]
        for r, row in enumerate(picked):
            truth = data.tokens[row]
            for c in range(recipe.canvases):
                at = slice(width + c * recipe.block, width + (c + 1) * recipe.block)
                inputs = batch.tokens[r, at]
                number = (r * recipe.canvases + c) * recipe.block
                anchor = int(batch.teacher_rows[number]) - r * batch.tokens.shape[1]
                assert inputs[0] == truth[anchor]  # the last known token
                for i, token in enumerate(inputs[1:], 1):
                    assert token == MASK or token == truth[anchor + i]
                weights = batch.canvas_weights[number : number + recipe.block]
                for i in np.flatnonzero(weights):
                    assert batch.canvas_targets[number + i] == truth[anchor + i + 1]
                    assert data.segments[row, anchor + i + 1] == data.segments[row, anchor]
                    seen.add(i + 1 < recipe.block and inputs[i + 1] != MASK)
    assert seen == {False}  # a visible right token is never scored


def test_pairs_mask_each_other_s_complement():
    recipe = dataclasses.replace(RECIPE, full=0.0, wrong=0.0)
    batch = Batches(split(), recipe, MASK).batch(0)
    width = split().tokens.shape[1]
    canvases = batch.tokens[:, width:].reshape(2, recipe.canvases, recipe.block)
    teachers = batch.teacher_rows.reshape(2, recipe.canvases, recipe.block)
    for r in range(2):
        for c in range(0, recipe.canvases, 2):
            assert teachers[r, c, 0] == teachers[r, c + 1, 0]
            first, second = canvases[r, c, 1:] == MASK, canvases[r, c + 1, 1:] == MASK
            assert (first | second).all()


def test_wrong_tokens_are_scored_towards_the_truth():
    recipe = dataclasses.replace(RECIPE, full=0.0, wrong=0.9)
    data = split()
    batch = Batches(data, recipe, MASK).batch(0)
    picked, width = rows_of(data, recipe, 0, 0), data.tokens.shape[1]
    corrected = 0
    for r, row in enumerate(picked):
        for c in range(recipe.canvases):
            number = (r * recipe.canvases + c) * recipe.block
            anchor = int(batch.teacher_rows[number]) - r * batch.tokens.shape[1]
            inputs = batch.tokens[r, width + c * recipe.block : width + (c + 1) * recipe.block]
            for i in range(1, recipe.block):
                if inputs[i] not in (MASK, data.tokens[row, min(anchor + i, width - 1)]):
                    corrected += batch.canvas_weights[number + i - 1] > 0
    assert corrected > 0
