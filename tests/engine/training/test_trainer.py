"""Runs: the same seed gives the same losses, a resumed run follows the same curve, half a checkpoint is never read."""

import dataclasses
import json
from dataclasses import replace

import pytest
import torch
from training import RECIPE, batches, network

from remask.contract.errors import InputError, StorageError
from remask.engine.training import checkpoints
from remask.engine.training.recipe import Recipe
from remask.engine.training.trainer import Plan, Trainer, rate


def trainer(folder, recipe=RECIPE, rank=None, **kw):
    rank = recipe.rank if rank is None else rank
    return Trainer(network(rank=rank, **kw), batches(recipe), batches(recipe, rows=4), recipe, folder)


def losses(run, plan, stopped=lambda: False):
    found = []
    run.run(plan, lambda r: found.append(r), stopped)
    return [(r.step, r.losses) for r in found if r.kind == "train"]


def test_the_same_seed_gives_the_same_first_20_losses(tmp_path):
    plan = Plan(steps=20)
    assert losses(trainer(tmp_path / "a"), plan) == losses(trainer(tmp_path / "b"), plan)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_learns(tmp_path, dtype):
    found = losses(trainer(tmp_path, dtype=dtype), Plan(steps=60))
    assert found[-1][1].total < 0.8 * found[0][1].total


@pytest.mark.parametrize("rank", [0, 4])
def test_a_stopped_and_resumed_run_follows_the_same_curve(tmp_path, rank):
    recipe = replace(RECIPE, rank=rank, accumulate=2, decay=0.0)
    whole = losses(trainer(tmp_path / "whole", recipe), Plan(steps=12))
    first = trainer(tmp_path / "parts", recipe)
    parts = losses(first, Plan(steps=12), stopped=lambda: first.step >= 5)
    assert len(parts) == 5
    second = trainer(tmp_path / "parts", recipe)
    assert second.resume()
    assert (second.step, second.tokens) == (5, first.tokens)
    parts += losses(second, Plan(steps=12))
    assert parts == whole


def test_validation_is_always_the_same_rows(tmp_path):
    run = trainer(tmp_path)
    assert run.validate(2).losses == run.validate(2).losses


def test_an_empty_folder_is_not_resumed(tmp_path):
    assert not trainer(tmp_path / "none").resume()


def test_half_a_checkpoint_is_never_read(tmp_path, monkeypatch):
    run = trainer(tmp_path)
    losses(run, Plan(steps=2))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_file", full)
    run.step = 3
    with pytest.raises(StorageError, match="No space left"):
        run.save()
    assert [p.name for p in tmp_path.iterdir()] == ["step-0000002"]
    again = trainer(tmp_path)
    again.resume()
    assert again.step == 2


def test_a_damaged_checkpoint_is_named(tmp_path):
    losses(trainer(tmp_path), Plan(steps=1))
    (tmp_path / "step-0000001" / "learned.safetensors").write_bytes(b"x")
    with pytest.raises(InputError, match="step-0000001 cannot be read"):
        trainer(tmp_path).resume()


def test_a_run_of_another_recipe_or_model_is_not_gone_on_with(tmp_path):
    losses(trainer(tmp_path), Plan(steps=1))
    with pytest.raises(InputError, match="another lr"):
        trainer(tmp_path, replace(RECIPE, lr=0.5)).resume()
    with pytest.raises(InputError, match="another model or rank"):
        trainer(tmp_path, RECIPE, rank=8).resume()


def test_old_checkpoints_go_when_new_ones_are_whole(tmp_path):
    run = trainer(tmp_path)
    for step in range(1, 5):
        run.step = step
        run.save()
    assert [p.name for p in checkpoints.whole(tmp_path)] == ["step-0000003", "step-0000004"]


def test_the_rate_warms_up_holds_and_decays():
    recipe = Recipe(lr=1.0, warmup=9, decay=0.5)
    assert [rate(recipe, s, 0.0) for s in (0, 4, 9, 50)] == pytest.approx([0.1, 0.5, 1.0, 1.0])
    assert [rate(recipe, 50, p) for p in (0.5, 0.75, 1.0)] == pytest.approx([1.0, 0.5, 0.0])


def test_a_plan_needs_an_end():
    with pytest.raises(InputError, match="needs an end"):
        Plan()


def test_minutes_count_from_now():
    plan = Plan(minutes=2)
    assert [plan.progress(7, s) for s in (0, 60, 120, 999)] == [0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize(("name", "value"), [("lr", 2.0), ("block", 1), ("canvases", 3), ("rows", 0), ("full", -0.1)])
def test_impossible_recipes_are_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"recipe's {name}"):
        replace(RECIPE, **{name: value})


@pytest.mark.parametrize("values", [{"speed": 1}, {"lr": "fast"}, {"rows": 1.5}])
def test_settings_that_do_not_exist_are_refused(values):
    with pytest.raises(InputError, match=next(iter(values))):
        Recipe.from_dict(values)


def test_a_recipe_survives_its_file():
    assert Recipe.from_dict(json.loads(json.dumps(RECIPE.to_dict()))) == RECIPE
    assert {f.name for f in dataclasses.fields(Recipe)} == set(RECIPE.to_dict())
