"""The accelerated forward pass, its kernels interpreted, against the plain one."""

from dataclasses import replace

import pytest
import torch
from tiny import MASK, SHAPE, random_weights

from remask.engine.evaluation.plain_pass import PlainTransformer
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run
from remask.engine.models.static_pass import BUCKETS
from remask.engine.models.transformer import Confidence, Pass, Taps, Transformer

CPU = torch.device("cpu")
FLAGS = replace(SHAPE, qkv_bias=True, qk_norm=True, heads=6, kv_heads=3, layers=1)


@pytest.mark.parametrize("shape", [replace(SHAPE, layers=1), FLAGS], ids=["tiny", "flags"])
def test_prompt_blocks_and_canvas_equal_the_plain_pass(shape):
    weights = random_weights(shape)
    fast, plain = AcceleratedTransformer(shape, weights), PlainTransformer(shape, weights)
    ours, theirs = fast.new_cache(), plain.new_cache()
    start = 0
    for step in (
        Pass.causal([(7 * i) % 256 for i in range(70)], 0, CPU),
        Pass.block_causal([1, 2, 3, 4, 5], 70, 4, CPU),
        Pass.canvas([9, MASK, MASK], 75, CPU),
    ):
        torch.testing.assert_close(fast.forward(step, ours), plain.forward(step, theirs), atol=1e-4, rtol=1e-4)
        start += len(step.tokens)
        ours.advance(len(step.tokens))
        theirs.advance(len(step.tokens))
    torch.testing.assert_close(ours.snapshot(), theirs.snapshot(), atol=1e-4, rtol=1e-4)


def test_a_processor_takes_the_reference():
    assert not kernels_run(CPU)


def captured(fast):
    return set(fast._static._captured)


def test_captured_passes_equal_the_plain_pass_whatever_their_size_and_sequence():
    """Padded to a bucket, behind other contexts, of two sequences in turn: the second use of a bucket is a capture."""
    shape = replace(SHAPE, layers=1)
    weights = random_weights(shape)
    fast, plain = AcceleratedTransformer(shape, weights), PlainTransformer(shape, weights)
    pairs = [(fast.new_cache(), plain.new_cache()) for _ in range(2)]
    for number, (ours, theirs) in enumerate(pairs):
        prompt = Pass.causal([(5 * i + number) % 256 for i in range(66 + number)], 0, CPU)
        for model, cache in ((fast, ours), (plain, theirs)):
            model.forward(prompt, cache)
            cache.advance(66 + number)
    assert not captured(fast)
    for size in (3, 4, 3):
        for ours, theirs in pairs:
            steps = [
                Pass.canvas([9, MASK, MASK, 7][:size], ours.length, CPU),
                Pass.causal([1] * size, ours.length, CPU),
            ]
            for step in steps:
                got, want = fast.forward(step, ours), plain.forward(step, theirs)
                torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
            ours.advance(size)
            theirs.advance(size)
    assert captured(fast) == {(4, False), (4, True)}
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.snapshot(), theirs.snapshot(), atol=1e-4, rtol=1e-4)
    kept = fast.forward(Pass.canvas([9, MASK], pairs[0][0].length, CPU), pairs[0][0])
    before = kept.clone()
    fast.forward(Pass.canvas([8, MASK], pairs[0][0].length, CPU), pairs[0][0])
    fast.forward(Pass.canvas([7, MASK], pairs[0][0].length, CPU), pairs[0][0])
    assert torch.equal(kept, before)


def test_a_pool_that_moved_is_captured_anew_and_long_passes_never_are():
    shape = replace(SHAPE, layers=1)
    fast = AcceleratedTransformer(shape, random_weights(shape))
    cache = fast.new_cache()
    step = Pass.canvas([1, MASK], 0, CPU)
    first = [fast.forward(step, cache) for _ in range(2)][1]
    assert captured(fast) == {(2, False)}
    fast._pool._grow()
    assert torch.equal(fast.forward(step, cache), first)
    assert fast._static._generation == fast._pool.generation
    assert not fast._static.takes(Pass.canvas([1] * (BUCKETS[-1] + 1), 0, CPU), cache)


def test_a_failed_capture_leaves_plain_passes(monkeypatch, caplog):
    shape = replace(SHAPE, layers=1)
    fast = AcceleratedTransformer(shape, random_weights(shape))
    cache, step = fast.new_cache(), Pass.canvas([1, MASK], 0, CPU)
    want = fast.forward(step, cache)

    def refuse(run, inputs):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr("remask.engine.models.static_pass.capture", refuse)
    for _ in range(3):
        assert torch.equal(fast.forward(step, cache), want)
    assert [r.message for r in caplog.records if "cannot be captured" in r.message] != []
    assert len(caplog.records) == 1
    assert fast._works


def test_a_kernel_that_fails_at_work_gives_way_to_torch_and_that_is_said_once(caplog):
    shape = replace(SHAPE, layers=1)
    weights = random_weights(shape)
    fast, plain = AcceleratedTransformer(shape, weights), PlainTransformer(shape, weights)
    ours, theirs = fast.new_cache(), plain.new_cache()

    def refuse(*_):
        raise RuntimeError("out of resource: shared memory")

    fast._rotary = refuse
    for step in (Pass.causal([1, 2, 3], 0, CPU), Pass.canvas([4, MASK], 3, CPU)):
        torch.testing.assert_close(fast.forward(step, ours), plain.forward(step, theirs), atol=1e-4, rtol=1e-4)
        ours.advance(len(step.tokens))
        theirs.advance(len(step.tokens))
    assert len([r for r in caplog.records if "shared memory" in r.message]) == 1


def test_a_kernel_that_fails_behind_the_first_layer_leaves_no_states_of_its_own_pass():
    weights = random_weights()
    fast, plain = AcceleratedTransformer(SHAPE, weights), Transformer(SHAPE, weights)
    rotary, calls = fast._rotary, []

    def fail_later(*arguments):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("out of resource: shared memory")
        return rotary(*arguments)

    fast._rotary = fail_later
    ours, theirs = Taps((0, 1)), Taps((0, 1))
    fast.forward(Pass.causal([1, 2, 3], 0, CPU), fast.new_cache(), ours)
    plain.forward(Pass.causal([1, 2, 3], 0, CPU), plain.new_cache(), theirs)
    torch.testing.assert_close(ours.stacked(), theirs.stacked(), atol=1e-4, rtol=1e-4)


def test_memory_that_is_short_is_not_taken_for_a_broken_kernel():
    shape = replace(SHAPE, layers=1)
    fast = AcceleratedTransformer(shape, random_weights(shape))

    def refuse(*_):
        raise torch.OutOfMemoryError("no room")

    fast._rms_norm = refuse
    with pytest.raises(torch.OutOfMemoryError):
        fast.forward(Pass.causal([1, 2, 3], 0, CPU), fast.new_cache())
    assert fast._works


@pytest.mark.parametrize("never", [[], [3, 250]])
def test_confidence_without_logits_equals_that_of_the_logits(never):
    shape = replace(SHAPE, layers=1)
    fast, plain = (kind(shape, random_weights(shape)) for kind in (AcceleratedTransformer, Transformer))
    hidden = torch.randn(5, shape.width, generator=torch.Generator().manual_seed(2))
    got, want = (model.confidence(hidden, torch.tensor(never, dtype=torch.int64)) for model in (fast, plain))
    assert isinstance(got, Confidence)
    assert torch.equal(got.token, want.token)
    assert not set(got.token.tolist()) & set(never)
    for ours, theirs in zip(got[1:], want[1:], strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    assert fast._works
    fast._confidence = None  # as a kernel that does not compile
    for ours, theirs in zip(fast.confidence(hidden, torch.tensor(never, dtype=torch.int64)), want, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_the_bench_of_a_card_runs_through_with_all_kernels(monkeypatch):
    """Interpreted, in small: so that the one run on a card is not its first."""
    from remask.engine.evaluation import bench_gpu, bench_kernels, bench_pass

    for module in (bench_gpu, bench_kernels, bench_pass):
        monkeypatch.setattr(module, "kernels_run", lambda _: True)
    monkeypatch.setattr(bench_pass, "PROBE_BYTES", 2**16)
    lines = list(bench_gpu.bench_gpu(CPU, bench_gpu.DRY))
    assert {line["kind"] for line in lines} == {"machine", "kernel", "pass", "passes"}
    assert {line["kernel"] for line in lines if line["kind"] == "kernel"} == {
        "rms_norm",
        "confidence",
        "confidence_head",
        "canvas_attention",
    }
    assert all(line["error"] < 1e-3 for line in lines if line["kind"] == "kernel")
    assert lines[-1]["captured"] == [(1, False), (4, False)]
    assert lines[-1]["works"]
