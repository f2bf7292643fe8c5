"""The head learns to see errors, always the same way, and scores as the engine will."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import SHAPE, SPEC
from training import fixed_network, split

from remask.contract.errors import InputError, StorageError
from remask.engine.judge.corrector import load_corrector, normalise, part_shapes, save_corrector, score
from remask.engine.training.corrector import CorrectorPlan, Verdicts, fit, folded, measure, train_corrector
from remask.engine.training.corrector_run import check_writable
from remask.engine.training.drafts import DraftOptions, Drafts, Kind, Labelled
from remask.engine.training.working_point import average_precision

PLAN = CorrectorPlan(steps=5, inner=8, epochs=4, batch=32, held_out=4)
TAPS = (0, 1)


def sources(seed=0):
    options = DraftOptions(rows=2, block=4, canvases=12, clean=16, seed=seed)
    return [Drafts(split(rows, seed=s), fixed_network(), SPEC, TAPS, options) for rows, s in ((8, 1), (6, 2))]


def made(plan=PLAN, progress=lambda *_: None):
    return train_corrector(*sources(plan.seed), plan, TAPS, "base", progress)


def pool(count=3000, width=16, seed=0):
    """Wrong tokens point in a direction of their own; another direction is a hundred times larger and says nothing."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(count) < 0.3
    states = rng.normal(size=(count, 2, width))
    states[:, 1, 3] += 4.0 * wrong
    states[:, :, 0] = 200 + 10 * rng.normal(size=(count, 2))
    signs = torch.from_numpy(rng.normal(size=(count, 4))).float()
    return Labelled(normalise(torch.from_numpy(states)).half(), signs, wrong, np.zeros(count, np.uint8))


def test_it_sees_errors_that_only_the_states_show():
    parts = fit(pool(2000), replace(PLAN, batch=64, lr=5e-2))
    fresh = pool(seed=1)
    scores = score(parts, fresh.states, fresh.signs).numpy()
    assert average_precision(scores, fresh.wrong) > 0.9
    assert average_precision(-fresh.signs[:, 0].numpy(), fresh.wrong) < 0.5


def test_planted_errors_are_seen_in_a_network_s_states():
    """A tiny random network knows no code, but its states know which token was read."""
    figures = made(replace(PLAN, steps=12, epochs=8, lr=3e-2)).facts["figures"]
    assert figures["drafts"]["auc"] > 0.6
    assert figures["drafts"]["auc"] > figures["log_probability"]["auc"]


def test_the_same_seed_gives_the_same_head():
    first, second, other = made(), made(), made(replace(PLAN, seed=1))
    assert all(torch.equal(first.parts[n], second.parts[n]) for n in first.parts)
    assert (first.threshold, first.facts["figures"]) == (second.threshold, second.facts["figures"])
    assert not torch.equal(first.parts["skip.weight"], other.parts["skip.weight"])


def test_folding_changes_no_score():
    shapes = part_shapes(2, 16, 8)
    parts = {n: torch.randn(s) for n, s in shapes.items()}
    mean, deviation = torch.randn(2, 16), torch.rand(2, 16) + 0.5
    states, signs = torch.randn(9, 2, 16), torch.randn(9, 4)
    normed = normalise(states)
    plain = folded(parts, mean, deviation)
    flat = (normed - mean) / deviation
    gates = (flat[:, -1] @ parts["gate.weight"].T + parts["gate.bias"]).sigmoid()
    skips = torch.einsum("tkw,kmw->tkm", flat, parts["skip.weight"]) + parts["skip.bias"]
    inner = (gates[:, :, None] * skips).sum(1) + signs @ parts["signs.weight"].T + parts["signs.bias"]
    both = torch.cat([torch.nn.functional.silu(inner), signs], 1)
    expected = both @ parts["out.weight"] + parts["out.bias"]
    assert torch.allclose(score(plain, states, signs), expected, atol=1e-3)


def test_a_loaded_head_gives_the_scores_of_training(tmp_path):
    head = made()
    path = tmp_path / "corrector.safetensors"
    save_corrector(path, head)
    back = load_corrector(path, base="base", layers=SHAPE.layers, width=SHAPE.width)
    seen = sources()[1].labelled(1)
    assert torch.equal(back.wrong(seen.states, seen.signs), score(head.parts, seen.states, seen.signs).sigmoid())
    assert back.facts == json.loads(json.dumps(head.facts))
    assert (back.threshold, back.strict) == (head.threshold, head.strict)


def test_the_time_ends_the_gathering_and_every_stage_is_shown():
    shown = []
    head = made(replace(PLAN, steps=0, minutes=1e-6), lambda stage, done: shown.append((stage, done)))
    assert head.facts["trained"]["batches"] == 1
    assert {stage for stage, _ in shown} == {"held-out drafts", "drafts", "head"}
    assert shown[-1] == ("head", 1.0)
    assert all(0 <= done <= 1 for _, done in shown)


def test_lines_are_drawn_on_one_half_and_measured_on_the_other():
    """The odd half's labels are turned round: what is drawn must not notice, what is measured must."""
    rng = np.random.default_rng(0)
    count = 4000
    wrong = rng.random(count) < 0.4
    scores = np.clip(wrong * 0.5 + rng.random(count) * 0.6, 0.01, 0.99)
    kind = rng.choice([int(k) for k in Kind], count).astype(np.uint8)
    wrong[kind == Kind.CLEAN] = False
    odd = rng.random(count) < 0.5
    straight = measure(Verdicts(scores, scores, wrong, kind, odd), PLAN)
    turned = measure(Verdicts(scores, scores, np.where(odd, ~wrong, wrong), kind, odd), PLAN)
    assert straight[:2] == turned[:2]
    assert straight[2]["drafts"]["precision"] > 0.75 > 0.3 > turned[2]["drafts"]["precision"]
    assert straight[2]["true_code"]["strict"] <= 4 * PLAN.doubted
    assert straight[1] >= straight[0]


def test_drafts_without_errors_teach_nothing():
    from remask.engine.training import corrector

    class Right:
        def labelled(self, step):
            return Labelled(torch.zeros(3, 1, 4).half(), torch.zeros(3, 4), np.zeros(3, bool), np.zeros(3, np.uint8))

    with pytest.raises(InputError, match="nothing tells them apart"):
        corrector._gather(Right(), PLAN, 0.0, lambda *_: None)


def test_a_plan_needs_an_end():
    with pytest.raises(InputError, match="needs an end"):
        CorrectorPlan()


def test_a_folder_that_cannot_be_made_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        check_writable(tmp_path / "file" / "below")
    assert check_writable(tmp_path / "new").name == "corrector.safetensors"
    assert check_writable(tmp_path / "x.safetensors").name == "x.safetensors"
    assert not list((tmp_path / "new").iterdir())
