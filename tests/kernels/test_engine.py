"""The accelerated forward pass, its kernels interpreted, against the plain one."""

from dataclasses import replace

import pytest
import torch
from tiny import MASK, SHAPE, random_weights

from remask.engine.evaluation.plain_pass import PlainTransformer
from remask.engine.models.accelerated import AcceleratedTransformer, kernels_run
from remask.engine.models.inputs import Size
from remask.engine.models.passes import Confidence, Pass, Taps
from remask.engine.models.static_pass import BUCKETS, size_of
from remask.engine.models.transformer import Transformer

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
    assert captured(fast) == {Size(4, False), Size(4, True)}
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.snapshot(), theirs.snapshot(), atol=1e-4, rtol=1e-4)
    kept = fast.forward(Pass.canvas([9, MASK], pairs[0][0].length, CPU), pairs[0][0])
    before = kept.clone()
    fast.forward(Pass.canvas([8, MASK], pairs[0][0].length, CPU), pairs[0][0])
    fast.forward(Pass.canvas([7, MASK], pairs[0][0].length, CPU), pairs[0][0])
    assert torch.equal(kept, before)


def branched(own, held, count, start):
    """Rows that see the beginning, of the `held` entries behind it their `own`, and each other causally."""
    mask = torch.zeros(count, held + count, dtype=torch.bool)
    mask[:, own] = True
    mask[:, held:] = torch.ones(count, count, dtype=torch.bool).tril()
    return Pass(torch.arange(count) + 65, torch.arange(count) + start, mask)


def test_branches_behind_one_beginning_equal_the_plain_pass_without_a_copy_of_it():
    shape = replace(SHAPE, layers=1)
    weights = random_weights(shape)
    fast, plain = AcceleratedTransformer(shape, weights), Transformer(shape, weights)
    ours, theirs = fast.new_cache(), plain.new_cache()
    for model, cache in ((fast, ours), (plain, theirs)):
        model.forward(Pass.causal([(3 * i) % 256 for i in range(61)], 0, CPU), cache)
        cache.advance(61)
    held = 0
    for own, count in (([], 6), ([1, 3, 4], 2), ([0, 6, 7], 3), ([1], 1), ([0, 2], 3)):
        step = branched(own, held, count, 61 + len(own))
        torch.testing.assert_close(fast.forward(step, ours), plain.forward(step, theirs), atol=1e-4, rtol=1e-4)
        ours.advance(count)
        theirs.advance(count)
        held += count
    assert fast._works
    assert Size(4, True, 64) in captured(fast)
    assert len(ours.pages) == 2
    long = branched([], held, 70, 61)  # as a prompt: not captured
    torch.testing.assert_close(fast.forward(long, ours), plain.forward(long, theirs), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("counts", [(3, 1, 4), (2, 2), (70, 3)], ids=["padded", "exact", "long"])
def test_several_sequences_in_a_pass_equal_each_of_them_alone(counts):
    """Of unlike contexts, with and without masks, some sharing pages; captured where they are short."""
    shape = replace(SHAPE, layers=1)
    fast = AcceleratedTransformer(shape, random_weights(shape))
    first = fast.new_cache()
    fast.forward(Pass.causal([(3 * i) % 256 for i in range(66)], 0, CPU), first)
    first.advance(66)
    caches = [first, first.fork(), fast.new_cache()][: len(counts)]
    alone = [cache.fork() for cache in caches]
    for turn in range(3):
        steps = [
            branched([0], 2, count, cache.length) if number == 1 else Pass.canvas([7 + turn] * count, cache.length, CPU)
            for number, (count, cache) in enumerate(zip(counts, caches, strict=True))
        ]
        together = fast.forward_all(steps, caches)
        for got, step, cache, other in zip(together, steps, caches, alone, strict=True):
            torch.testing.assert_close(got, fast.forward(step, other), atol=1e-5, rtol=1e-5)
            cache.advance(len(step.tokens))
            other.advance(len(step.tokens))
    for cache, other in zip(caches, alone, strict=True):
        torch.testing.assert_close(cache.snapshot(), other.snapshot(), atol=1e-5, rtol=1e-5)
    assert fast._works
    expected = {(3, 1, 4): Size(4, True, 64, 4), (2, 2): Size(2, True, 64, 2)}
    assert counts not in expected or expected[counts] in captured(fast)


def test_what_does_not_fit_a_size_has_none():
    def canvas(count):
        return Pass.canvas([1] * count, 0, CPU)

    assert size_of([canvas(33)] * 3) == Size(64, False, 0, 4)
    assert size_of([canvas(64)] * 9) is None  # too many rows
    assert size_of([canvas(1)] * 17) is None
    assert size_of([branched([], 5000, 2, 0)]) is None


def test_a_pool_that_moved_is_captured_anew_and_long_passes_never_are():
    shape = replace(SHAPE, layers=1)
    fast = AcceleratedTransformer(shape, random_weights(shape))
    cache = fast.new_cache()
    step = Pass.canvas([1, MASK], 0, CPU)
    first = [fast.forward(step, cache) for _ in range(2)][1]
    assert captured(fast) == {Size(2, False)}
    fast._pool._grow()
    assert torch.equal(fast.forward(step, cache), first)
    assert fast._static._generation == fast._pool.generation
    assert not fast._static.takes([Pass.canvas([1] * (BUCKETS[-1] + 1), 0, CPU)], [cache])


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
    assert fast.joins
    for step in (Pass.causal([1, 2, 3], 0, CPU), Pass.canvas([4, MASK], 3, CPU)):
        torch.testing.assert_close(fast.forward(step, ours), plain.forward(step, theirs), atol=1e-4, rtol=1e-4)
        ours.advance(len(step.tokens))
        theirs.advance(len(step.tokens))
    assert len([r for r in caplog.records if "shared memory" in r.message]) == 1
    assert not fast.joins
    step = Pass.canvas([4, MASK], 5, CPU)
    both = fast.forward_all([step, step], [ours, ours.fork()])  # one after the other, then
    assert torch.equal(both[0], both[1])


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
    from remask.engine.evaluation import bench_gpu, bench_kernels, bench_pass, shapes

    for module in (bench_gpu, bench_kernels, shapes):
        monkeypatch.setattr(module, "kernels_run", lambda _: True)
    monkeypatch.setattr(bench_gpu, "choose_dtype", lambda name, _: {"int8": torch.int8}[name])
    monkeypatch.setattr(bench_pass, "PROBE_BYTES", 2**16)
    lines = list(bench_gpu.bench_gpu(CPU, replace(bench_gpu.DRY, shapes=("tiny",))))
    assert {line["kind"] for line in lines} == {"machine", "kernel", "pass", "batch", "passes"}
    assert {line["kernel"] for line in lines if line["kind"] == "kernel"} == {
        "rms_norm",
        "confidence",
        "confidence_head",
        "scaled_product",
        "canvas_attention",
    }
    assert all(line["error"] < 1e-3 for line in lines if line["kind"] == "kernel")
    assert [(line["what"], line["sequences"]) for line in lines if line["kind"] == "batch"] == [
        (what, count) for what in ("tiny", "tiny int8") for count in (1, 3)
    ]
    for line in (line for line in lines if line["kind"] == "passes"):
        assert line["captured"] == [(1, False, 0, 1), (4, False, 0, 1), (4, False, 0, 4)]
        assert line["works"]
