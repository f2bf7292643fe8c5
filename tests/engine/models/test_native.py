"""The C pass against the plain pass in float32 with the same int8 weights, and what it promises beyond."""

import platform
import shutil
from dataclasses import replace

import pytest
import torch
from tiny import MASK, SHAPE, random_weights

from remask.contract.errors import InputError
from remask.engine.evaluation.plain_pass import PlainTransformer
from remask.engine.models import model as loading
from remask.engine.models.checkpoint import quantise
from remask.engine.models.model import Model
from remask.engine.models.native import NativeTransformer, _multiplies_exactly, native_library
from remask.engine.models.native_kv import NativeCache
from remask.engine.models.passes import Pass
from remask.kernels.native import build

CPU = torch.device("cpu")
WIDE = replace(SHAPE, width=96, heads=6, kv_heads=2, head_dim=64, mlp_width=200)
ALL = replace(SHAPE, qkv_bias=True, o_bias=True, qk_norm=True, tied_embeddings=False, heads=6, kv_heads=3, head_dim=12)

compiled = pytest.mark.usefixtures("_library")


@pytest.fixture
def _library():
    if native_library() is None:
        pytest.skip("no C compiler, or a processor without integer dot products")


def pair(shape):
    """The C pass and the plain one in float32, of the same weights."""
    generator = torch.Generator().manual_seed(5)
    weights = {  # norms and biases as well, so that leaving one out would show
        name: torch.rand(w.shape, generator=generator) + 0.5 if w.ndim == 1 else w
        for name, w in random_weights(shape).items()
    }
    narrow, wide = {}, {}
    for name, w in weights.items():
        if w.ndim == 2:
            narrow[name], narrow[f"{name}_scale"] = rows, scale = quantise(w)
            wide[name] = rows * scale[:, None]
        else:
            narrow[name] = wide[name] = w
    return NativeTransformer(shape, narrow), PlainTransformer(shape, wide)


def close(got, want):
    """Keys and values are bfloat16: 8 bits."""
    torch.testing.assert_close(got, want, atol=0.03 * float(want.abs().max()), rtol=0)
    assert (got - want).norm() < 0.01 * want.norm()


@compiled
@pytest.mark.parametrize("shape", [SHAPE, WIDE, ALL], ids=["tiny", "wide", "all-flags"])
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33, 70])
def test_context_and_canvas_equal_the_plain_pass(shape, count):
    native, plain = pair(shape)
    ours, theirs = native.new_cache(), plain.new_cache()
    for start in (0, count):
        tokens = [(7 * i + start) % 256 for i in range(count)]
        step = Pass.causal(tokens, start, CPU)
        close(native.forward(step, ours), plain.forward(step, theirs))
        ours.advance(count)
        theirs.advance(count)
    step = Pass.canvas([3, MASK, MASK, 9], 2 * count, CPU)
    close(
        native.logits(native.forward(step, ours)),
        plain.logits(plain.forward(step, theirs)),
    )
    close(ours.snapshot().float(), theirs.snapshot())


@compiled
def test_a_row_does_not_depend_on_the_rows_beside_it():
    """To the last bit: a verified draft is what one token at a time would have written."""
    native, _ = pair(WIDE)
    together, alone = native.new_cache(), native.new_cache()
    tokens = [(11 * i) % 256 for i in range(90)]
    whole = native.logits(native.forward(Pass.causal(tokens, 0, CPU), together))
    for i, token in enumerate(tokens):
        row = native.logits(native.forward(Pass.causal([token], i, CPU), alone))
        assert torch.equal(row[0], whole[i])
        alone.advance(1)
    together.advance(len(tokens))
    assert torch.equal(alone.snapshot(), together.snapshot())


@compiled
@pytest.mark.parametrize("shared", [1, 30, 70])
def test_a_mask_wider_than_the_pass_hides_older_entries(shared):
    """Of 40 entries behind a shared context every row sees its own third, as in the plain pass."""
    native, plain = pair(WIDE)
    ours, theirs = native.new_cache(), plain.new_cache()
    behind, rows = [(5 * i) % 256 for i in range(40)], torch.tensor([3, 9, 27, 81])
    for tokens, start in (([(7 * i) % 256 for i in range(shared)], 0), (behind, shared)):
        for transformer, cache in ((native, ours), (plain, theirs)):
            transformer.forward(Pass.causal(tokens, start, CPU), cache)
            cache.advance(len(tokens))
    mask = (torch.arange(44)[None] % 3 == torch.arange(4)[:, None] % 3) | (
        torch.arange(44) == 40 + torch.arange(4)[:, None]
    )
    step = Pass(rows, torch.full((4,), shared + 40), mask)
    close(native.logits(native.forward(step, ours)), plain.logits(plain.forward(step, theirs)))


@compiled
def test_nor_on_how_the_context_was_read_where_it_is_longer_than_a_chunk_of_keys():
    native, _ = pair(SHAPE)
    tokens = [(11 * i) % 256 for i in range(540)]
    caches = [native.new_cache() for _ in range(2)]
    for cache, sizes in zip(caches, [(540,), (3, 253, 1, 200, 83)], strict=True):
        for size in sizes:
            at = cache.length
            native.forward(Pass.causal(tokens[at : at + size], at, CPU), cache)
            cache.advance(size)
    assert torch.equal(caches[0].snapshot(), caches[1].snapshot())
    block = native.forward(Pass.canvas([3, MASK, 5, MASK], 540, CPU), caches[0])
    hidden = torch.eye(4, dtype=torch.bool)  # each alone: what others see is their own
    alone = native.forward(Pass(torch.tensor([3, MASK, 5, MASK]), torch.full((4,), 540), hidden), caches[1])
    assert torch.equal(alone[0], native.forward(Pass.causal([3], 540, CPU), caches[0])[0])
    assert not torch.equal(alone, block)


@compiled
@pytest.mark.parametrize("machine", [("-march=x86-64-v3",), ("-march=icelake-server",)], ids=lambda m: m[-1])
def test_attention_as_compiled_for_other_processors(tmp_path, monkeypatch, machine):
    if not supported(machine):
        pytest.skip("this processor does not run that code")
    library = build.load(tmp_path, machine)
    monkeypatch.setattr("remask.engine.models.native.native_library", lambda: library)
    native, plain = pair(WIDE)
    ours, theirs = native.new_cache(), plain.new_cache()
    tokens = [(7 * i) % 256 for i in range(300)]
    close(native.forward(Pass.causal(tokens, 0, CPU), ours), plain.forward(Pass.causal(tokens, 0, CPU), theirs))
    ours.advance(300)
    theirs.advance(300)
    step = Pass.canvas([3, MASK, MASK, 9, 4, MASK], 300, CPU)
    close(native.forward(step, ours), plain.forward(step, theirs))


@compiled
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    native, _ = pair(WIDE)
    step = Pass.canvas([5, 6, MASK, MASK, 8], 0, CPU)
    before = torch.get_num_threads()
    want = native.forward(step, native.new_cache())
    try:
        torch.set_num_threads(threads)
        assert torch.equal(native.forward(step, native.new_cache()), want)
    finally:
        torch.set_num_threads(before)


@compiled
@pytest.mark.parametrize("count", [1, 31, 32, 33, 300])
def test_entries_survive_a_round_trip_and_growth(count):
    native, _ = pair(SHAPE)
    cache, other = native.new_cache(), native.new_cache()
    native.forward(Pass.causal([i % 256 for i in range(count)], 0, CPU), cache)
    cache.advance(count)
    other.restore(cache.snapshot())
    assert other.length == count
    assert torch.equal(other.snapshot(), cache.snapshot())
    native.forward(Pass.causal([1] * 400, count, CPU), cache)  # grows during a pass
    cache.restore(other.snapshot())
    step = Pass.canvas([1, MASK], count, CPU)
    assert torch.equal(native.forward(step, cache), native.forward(step, other))


@pytest.mark.parametrize("entries", [torch.zeros(2, 9, 2, 4, 8), torch.zeros(2, 2, 2, 4, 8)])
def test_entries_of_another_model_are_refused(entries):
    with pytest.raises(ValueError, match="expected"):
        NativeCache(SHAPE).restore(entries)


OTHERS = [("-march=x86-64-v3",), ("-march=x86-64-v3", "-mavxvnni"), ("-march=icelake-server",), ("-march=x86-64",)]


def supported(machine):
    if platform.machine() != "x86_64":
        return False
    capability = torch.backends.cpu.get_cpu_capability()
    vnni = torch.cpu._is_vnni_supported()
    return {"-march=icelake-server": vnni, "-mavxvnni": _has("avx_vnni")}.get(machine[-1], "AVX" in capability)


def _has(flag):
    try:
        with open("/proc/cpuinfo") as file:
            return flag in file.read()
    except OSError:
        return False


@pytest.mark.parametrize("machine", OTHERS, ids=lambda m: m[-1].removeprefix("-m"))
def test_products_are_exact_as_compiled_for_other_processors(tmp_path, machine):
    if not any(shutil.which(c) for c in build.COMPILERS):
        pytest.skip("no C compiler")
    if not supported(machine):
        pytest.skip("this processor does not run that code")
    library = build.load(tmp_path, machine)
    assert library is not None
    assert _multiplies_exactly(library)


def test_no_compiler_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.load(tmp_path) is None


@pytest.mark.model
def test_without_the_c_pass_the_default_model_is_read_as_floats(monkeypatch):
    monkeypatch.setattr(loading, "native_library", lambda: None)
    assert Model.load().transformer.dtype in (torch.bfloat16, torch.float32)
    with pytest.raises(InputError, match="compiler"):
        Model.load(dtype="int8")


@pytest.mark.model
@compiled
def test_the_default_model_writes_what_float32_writes(default_model):
    quick = Model.load()
    assert quick.transformer.dtype == torch.int8
    assert quick.fingerprint != default_model.fingerprint
    step = Pass.causal(quick.encode("def area(width, height):\n    return width * height\n"), 0, CPU)
    scores = [
        m.transformer.logits(m.transformer.forward(step, m.transformer.new_cache())) for m in (quick, default_model)
    ]
    best = scores[1].argmax(-1)
    assert torch.equal(scores[0].argmax(-1), best)
    # Its rows with the adapter in them are rounded anew: what is unlikely anyhow may differ more than this.
    sure = [s.log_softmax(-1).gather(1, best[:, None]) for s in scores]
    assert (sure[0] - sure[1]).abs().mean() < 0.05
    torch.testing.assert_close(sure[0], sure[1], atol=0.11, rtol=0)  # one of 13 places differs by 0.104
