"""Canvases against the truth and the causal reading."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import END, MASK, PREFIX, SPEC, SUFFIX, scripted_model, tiny_model

from remask.contract.errors import InputError
from remask.engine.decode.regimes.causal import CausalReader
from remask.engine.evaluation.infilling import describe
from remask.engine.evaluation.tokens import MASK_RATES, Example, TokenReport, measure, read_examples
from remask.engine.models.passes import Pass
from remask.engine.training.corpus.store import load_corpus

HEAD = [SUFFIX, *b"\n", PREFIX, *b"x ="]


def example(name="0:0", middle=b" 1 + 2"):
    return Example(name, [*HEAD, *middle, END], HEAD.index(PREFIX), len(HEAD))


def report(model, canvas=4):
    return TokenReport(split="s", seed=0, canvas=canvas, **describe(model))


def by_rate(values):
    return {block["mask_rate"]: block for block in values["blocks"]}


def test_a_model_that_is_always_right():
    model = scripted_model(" 1 + 2", len(HEAD))
    values = measure(model, [example()], report(model)).to_dict()
    full = by_rate(values)[1.0]
    assert full["seen"] == [2, 2, 2, 1]  # six characters and the end, in canvases of four
    assert full["true"] == full["causal"] == [1.0, 1.0, 1.0, 1.0]
    assert values["causal_top1"] == 1.0
    assert values["rounds"] == 2
    assert values["tokens_per_round"] == 4.0  # 4 + 1 tokens, then 2 and the end
    assert values["accepted"] == [1.0, 1.0, 1.0, 0.5]


def test_a_canvas_that_is_wrong_at_one_place():
    model = scripted_model(" 1 + 2", len(HEAD), canvas_errors=frozenset({1}))
    values = measure(model, [example()], report(model)).to_dict()
    assert by_rate(values)[1.0]["true"] == [1.0, 0.5, 1.0, 1.0]
    assert values["accepted"] == [1.0, 0.5, 0.5, 0.0]
    assert values["tokens_per_round"] == 2.5  # 1 + 1, then 3 with the end


def test_a_truth_that_the_model_does_not_write():
    model = scripted_model(" 1 + 2", len(HEAD))
    values = measure(model, [example(middle=b" 1 + 3")], report(model)).to_dict()
    full = by_rate(values)[1.0]
    assert full["true"] == [1.0, 0.5, 1.0, 1.0]
    assert full["causal"] == [1.0, 1.0, 1.0, 1.0]
    assert values["causal_top1"] == round(6 / 7, 4)


def test_cross_entropy_equals_that_of_one_plain_pass():
    model = tiny_model()
    one = example()
    values = measure(model, [one], report(model)).to_dict()
    with torch.inference_mode():
        step = Pass.causal(one.tokens[:-1], 0, model.transformer.device)
        logits = model.transformer.logits(model.transformer.forward(step, model.transformer.new_cache()))
    losses = torch.nn.functional.cross_entropy(logits, torch.tensor(one.tokens[1:]), reduction="none")
    assert values["ce_middle"] == pytest.approx(float(losses[one.middle - 1 :].mean()), abs=1e-4)
    assert values["ce_prefix"] == pytest.approx(float(losses[one.prefix : one.middle - 1].mean()), abs=1e-4)
    assert values["ce"] == pytest.approx(float(losses[one.prefix :].mean()), abs=1e-4)


def test_fewer_masks_are_seen_at_lower_rates():
    model = tiny_model()
    examples = [example(f"{i}:0", bytes(f" value_{i} + {i}", "ascii")) for i in range(12)]
    values = measure(model, examples, report(model)).to_dict()
    seen = [sum(block["seen"]) for block in values["blocks"]]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] == values["middle_tokens"] > seen[-1] > 0
    assert [block["mask_rate"] for block in values["blocks"]] == list(MASK_RATES)
    assert values == measure(model, examples, report(model)).to_dict()


def test_nothing_is_shown_behind_the_end_of_a_middle(monkeypatch):
    model = tiny_model()
    canvases = []
    predict = CausalReader.predict

    def spied(self, request, canvas):
        canvases.append(canvas.filled())
        return predict(self, request, canvas)

    monkeypatch.setattr(CausalReader, "predict", spied)
    measure(model, [example(f"{i}:0", b"ab") for i in range(20)], report(model))
    assert any(canvas[:3] != [MASK] * 3 for canvas in canvases)
    assert all(canvas[3:] == [MASK] for canvas in canvases)


def test_an_interrupt_keeps_what_is_done():
    model = tiny_model()
    done = []

    def advance():
        done.append(1)
        if len(done) == 2:
            raise KeyboardInterrupt

    values = measure(model, [example()] * 5, report(model), advance).to_dict()
    assert (values["n"], values["interrupted"]) == (2, True)


def test_weights_that_cannot_be_read_causally_are_refused():
    model = tiny_model(spec=replace(SPEC, verifies=False))
    with pytest.raises(InputError, match="not trained to be read causally"):
        measure(model, [example()], report(model))


def write_corpus(folder):
    """Two rows: the first with two examples, the second with one without a middle."""
    tokens, roles = np.zeros((2, 24), np.int32), np.zeros((2, 24), np.uint8)
    segments = np.full((2, 24), 65_535, np.uint16)
    whole = [*HEAD, *b" 1", END]
    marks = [1, 1, 2, 2, 2, 2, 3, 3, 3]
    for start, segment in ((0, 0), (9, 1)):
        tokens[0, start : start + 9], roles[0, start : start + 9] = whole, marks
        segments[0, start : start + 9] = segment
    tokens[1, :6], roles[1, :6], segments[1, :6] = HEAD, marks[:6], 0
    for part, array in (("tokens", tokens), ("roles", roles), ("segments", segments)):
        np.save(folder / f"validation.{part}.npy", array)
    (folder / "validation.jsonl").write_text("")
    manifest = {"format": 1, "row_tokens": 24, "tokenizer_sha256": "x", "splits": {"validation": {"rows": 2}}}
    (folder / "corpus.json").write_text(json.dumps(manifest))


def test_examples_are_cut_out_of_packed_rows(tmp_path):
    write_corpus(tmp_path)
    corpus = load_corpus(tmp_path)
    examples = read_examples(corpus, "validation")
    assert [(e.name, e.prefix, e.middle) for e in examples] == [("0:0", 2, 6), ("0:1", 2, 6)]
    assert examples[1].tokens == [*HEAD, *b" 1", END]
    with pytest.raises(InputError, match="no split 'test'; it has validation"):
        read_examples(corpus, "test")
