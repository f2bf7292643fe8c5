"""Each regime against a naive decoder of its own: no cache, every pass over the whole row, written for reading."""

from dataclasses import replace

import pytest
import torch
from tiny import END, MASK, SHAPE, SPEC, random_weights, tiny_model

from remask.contract.messages import Reason
from remask.engine.decode.canvas import Canvas, resize
from remask.engine.decode.denoise import step
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policy import Policy, Verify
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.models.passes import Pass
from remask.engine.models.spec import Layout, Regime
from remask.engine.models.transformer import Transformer
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
BLOCK = 8


@pytest.fixture(autouse=True)
def _inference():
    with torch.inference_mode():
        yield


def spec_for(regime, shift, **changes):
    return replace(SPEC, regime=regime, shift=shift, block_size=BLOCK, verifies=False, layout=Layout.CHAT, **changes)


BLOCKED = {0: spec_for(Regime.BLOCK_CAUSAL, 0), 1: spec_for(Regime.BLOCK_CAUSAL, 1, sub_block=4)}
STRICT = spec_for(Regime.STRICT_CAUSAL, 0)
BOTH_WAYS = {0: spec_for(Regime.BIDIRECTIONAL, 0), 1: spec_for(Regime.BIDIRECTIONAL, 1)}


def policy(threshold, canvas=BLOCK):
    return Policy(name="test", canvas=canvas, threshold=threshold, passes=64, verify=Verify.OFF)


def prompt_of(length, seed=0):
    return [(seed * 31 + 7 * i * i + i) % 256 for i in range(length)]


def whole_row(weights, tokens, visible, positions=None):
    """Scores [T, vocab] of a whole row, marks out of reach."""
    transformer = Transformer(SHAPE, weights)
    where = torch.arange(len(tokens)) if positions is None else torch.tensor(positions)
    scores = transformer.logits(
        transformer.forward(Pass(torch.tensor(tokens), where, visible), transformer.new_cache())
    )
    scores[:, list(SPEC.never)] = -torch.inf
    return scores


def choose(scores, masked, threshold):
    """Positions to commit and their tokens: all sure ones, at least the best."""
    probability, token = scores.softmax(-1).max(-1)
    sure = [i for i, p in zip(masked, probability, strict=True) if p >= threshold]
    best = masked[int(probability.argmax())]
    return {i: int(token[masked.index(i)]) for i in {*sure, best}}


def naive_blocks(weights, spec, prompt, count, threshold):
    """Aligned blocks in turn; with shifted logits a block's first token is from the last row of the one before."""
    tokens = list(prompt)
    size = spec.block_size

    def row(x):
        number = torch.arange(len(x)) // size
        return whole_row(weights, x, number[:, None] >= number[None, :])

    while len(tokens) < len(prompt) + count:
        start = len(tokens) // size * size
        if spec.shift and len(tokens) == start and start:
            tokens.append(int(row(tokens)[-1].argmax()))
        block = tokens[start:] + [MASK] * (start + size - len(tokens))
        while MASK in block:
            masked = [i for i in range(size) if block[i] == MASK]
            if spec.sub_block:  # counted from the start of the aligned block, as the published sampler does
                masked = [i for i in masked if i // spec.sub_block == masked[0] // spec.sub_block]
            scores = row(tokens[:start] + block)
            rows = torch.stack([scores[start + i - spec.shift] for i in masked])
            for i, t in choose(rows, masked, threshold).items():
                block[i] = t
        tokens = tokens[:start] + block
    written = tokens[len(prompt) : len(prompt) + count]
    return written[: written.index(END)] if END in written else written


def run(model, prompt, chosen, count, session=None, after=()):
    session = session or Session(model.transformer.new_cache())
    request = Request(session, chosen, Budget(count))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt, list(after)))
    decoder.decode(request, OPEN)
    return request


@pytest.mark.parametrize("threshold", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 19])
def test_unshifted_blocks_equal_the_naive_decoder(length, threshold):
    spec = BLOCKED[0]
    request = run(tiny_model(3, spec), prompt_of(length), policy(threshold), 20)
    assert request.written == naive_blocks(random_weights(seed=3), spec, prompt_of(length), 20, threshold)


@pytest.mark.parametrize("threshold", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 19])
def test_shifted_blocks_equal_the_naive_decoder(length, threshold):
    for spec in (replace(BLOCKED[1], sub_block=0), BLOCKED[1]):
        request = run(tiny_model(4, spec), prompt_of(length), policy(threshold), 20)
        assert request.written == naive_blocks(random_weights(seed=4), spec, prompt_of(length), 20, threshold)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_warm_session_equals_cold_around_a_block(shift, length):
    model = tiny_model(5, BLOCKED[shift])
    session = Session(model.transformer.new_cache())
    run(model, [*prompt_of(length)[:-2], 1, 2, 3], policy(0.5), 12, session)
    warm = run(model, prompt_of(length), policy(0.5), 20, session)
    assert warm.written == run(model, prompt_of(length), policy(0.5), 20).written
    assert len(session.tokens) % BLOCK == 0


@pytest.mark.parametrize("count", [1, 3, BLOCK - 1, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("shift", [0, 1])
def test_fewer_tokens_than_a_block_are_written_exactly(shift, count):
    model = tiny_model(6, BLOCKED[shift])
    full = run(model, prompt_of(BLOCK), policy(0.5), 24).written
    assert run(model, prompt_of(BLOCK), policy(0.5), count).written == full[:count]


@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, 2 * BLOCK])
@pytest.mark.parametrize("shift", [0, 1])
def test_all_that_is_written_counts_wherever_the_prompt_ends_in_a_block(shift, length):
    model = tiny_model(6, BLOCKED[shift])
    request = Request(Session(model.transformer.new_cache()), policy(0.5), Budget(6))
    decoder = Decoder(model)
    decoder.prepare(request, Prompt(prompt_of(length)))
    (only,) = decoder.texts(request, OPEN)
    assert only.branch.written == request.written


def test_an_edit_keeps_whole_blocks_only():
    model = tiny_model(7, BLOCKED[0])
    session = Session(model.transformer.new_cache())
    decoder = Decoder(model)
    prompt = prompt_of(4 * BLOCK + 3)
    decoder.prepare(Request(session, policy(0.5), Budget(1)), Prompt(prompt))
    assert len(session.tokens) == 4 * BLOCK
    edited = [*prompt[: 2 * BLOCK + 5], 99, *prompt[2 * BLOCK + 6 :]]
    counts = decoder.prepare(Request(session, policy(0.5), Budget(1)), Prompt(edited))
    assert (counts.cached, counts.run) == (2 * BLOCK, 2 * BLOCK)


def test_sub_blocks_are_resolved_left_to_right():
    model = tiny_model(8, BLOCKED[1])
    decoder = Decoder(model)
    request = Request(Session(model.transformer.new_cache()), policy(1.0), Budget(20))
    decoder.prepare(request, Prompt(prompt_of(3)))
    canvas = decoder._plan(request)
    order = []
    while not canvas.resolved:
        before = canvas.open.clone()
        step(decoder._reader, request, canvas)
        order += (before & ~canvas.open).nonzero()[:, 0].tolist()
    assert order[0] == 0  # the prompt's tail of three fills the first sub-block of four but for one
    assert set(order[1:5]) == {1, 2, 3, 4}


def naive_strict(weights, prompt, count, threshold, size=BLOCK):
    """Resolved tokens first, masks behind them, true positions; a mask's row predicts itself."""
    tokens = list(prompt)
    while len(tokens) < len(prompt) + count:
        window = [MASK] * min(size, len(prompt) + count - len(tokens))
        while MASK in window:
            known = [i for i, t in enumerate(window) if t != MASK]
            masked = [i for i, t in enumerate(window) if t == MASK]
            read = tokens + [window[i] for i in known] + [MASK] * len(masked)
            positions = [*range(len(tokens)), *(len(tokens) + i for i in (*known, *masked))]
            causal = torch.ones(len(read), len(read), dtype=torch.bool).tril()
            scores = whole_row(weights, read, causal, positions)[len(tokens) + len(known) :]
            for i, t in choose(scores, masked, threshold).items():
                window[i] = t
        tokens += window
    written = tokens[len(prompt) :]
    return written[: written.index(END)] if END in written else written


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_strict_causal_equals_the_naive_decoder(seed, threshold):
    request = run(tiny_model(seed, STRICT), prompt_of(9, seed), policy(threshold), 20)
    assert request.written == naive_strict(random_weights(seed=seed), prompt_of(9, seed), 20, threshold)


def test_strict_causal_spends_no_pass_on_writing_kv():
    model = tiny_model(1, STRICT)
    request = run(model, prompt_of(9), policy(0.0), 3 * BLOCK)
    assert request.forwards == 1 + 3  # the prompt, and one pass a canvas
    assert request.session.tokens == [*prompt_of(9), *request.written[: 2 * BLOCK]]


def naive_hole(weights, spec, before, after, length, threshold):
    canvas = [MASK] * length
    while MASK in canvas:
        masked = [i for i, t in enumerate(canvas) if t == MASK]
        row = whole_row(weights, before + canvas + after, None)
        scores = torch.stack([row[len(before) + i - spec.shift] for i in masked])
        for i, t in choose(scores, masked, threshold).items():
            canvas[i] = t
    return canvas[: canvas.index(END)] if END in canvas else canvas


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_bidirectional_equals_the_naive_decoder(shift, threshold):
    model, before, after = tiny_model(2, BOTH_WAYS[shift]), prompt_of(7), prompt_of(5, 1)
    request = run(model, before, policy(threshold, canvas=4), 4, after=after)
    assert request.written == naive_hole(random_weights(seed=2), BOTH_WAYS[shift], before, after, 4, threshold)


def test_bidirectional_keeps_no_state_between_requests():
    model = tiny_model(2, BOTH_WAYS[1])
    session = Session(model.transformer.new_cache())
    runs = [run(model, prompt_of(7), policy(0.5, 8), 8, session, prompt_of(5, 1)).written for _ in range(2)]
    assert runs[0] == runs[1]
    assert session.tokens == []


def test_length_search_takes_the_length_that_looks_surest():
    model = tiny_model(2, BOTH_WAYS[1])
    weights, before, after = random_weights(seed=2), prompt_of(7), prompt_of(5, 1)

    def sureness(length):
        row = whole_row(weights, before + [MASK] * length + after, None)
        return float(row[len(before) - 1 : len(before) - 1 + length].softmax(-1).amax(-1).mean())

    decoder = Decoder(model)
    request = Request(Session(model.transformer.new_cache()), policy(0.5, 32), Budget(32))
    decoder.prepare(request, Prompt(before, after))
    assert len(decoder._plan(request)) == max((4, 8, 16, 32), key=sureness)
    assert request.forwards == 4


def test_expand_and_delete_change_the_canvas():
    canvas = Canvas(4, MASK)
    canvas.commit(torch.tensor([10, 1, 2, 11]), torch.full((4,), 0.5), torch.tensor([True, True, True, False]))
    resized = resize(canvas, expand_id=1, dropped={2})
    assert resized.filled() == [10, MASK, MASK, MASK]
    assert resized.open.tolist() == [False, True, True, True]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("passes", [1, 3, 64])
def test_expand_and_delete_are_never_written_and_the_budget_holds(seed, passes):
    spec = replace(BOTH_WAYS[1], expand_id=5, delete_id=6)
    model = tiny_model(seed, spec)
    for token in (5, 6):  # make both likely
        model.transformer._head[token] *= 4
    few = replace(policy(0.2, 8), passes=passes)
    request = run(model, prompt_of(7, seed), few, 6, after=prompt_of(5, 1))
    assert len(request.written) <= 6
    assert not {5, 6} & set(request.written)


@pytest.mark.parametrize("spec", [*BLOCKED.values(), STRICT, *BOTH_WAYS.values()])
@pytest.mark.parametrize("passes", [1, 2, 3])
def test_the_deadline_holds_inside_a_canvas(spec, passes, monkeypatch):
    """Time is up after some passes of the first canvas: no more are run, and what stands without a gap is kept."""
    clock = iter(range(10_000))
    monkeypatch.setattr("remask.engine.decode.request.time.monotonic", lambda: next(clock))
    model = tiny_model(3, spec)
    request = Request(Session(model.transformer.new_cache()), policy(1.0), Budget(20))
    decoder = Decoder(model)
    before = decoder.prepare(request, Prompt(prompt_of(19), prompt_of(4))).passes
    started = next(clock)
    request.budget = Budget(20, deadline=started + 2 + passes)
    _, reason = decoder.decode(request, OPEN)
    assert reason is Reason.DEADLINE
    assert request.forwards - before <= passes + 1


@pytest.mark.parametrize("spec", [*BLOCKED.values(), STRICT, *BOTH_WAYS.values()])
@pytest.mark.parametrize("after", [0, 1, 2, 5])
def test_cancelled_inside_a_canvas_leaves_a_usable_session(spec, after):
    model = tiny_model(3, spec)
    session = Session(model.transformer.new_cache())
    polls = iter([False] * after + [True] * 99)
    cancelled = Request(session, policy(1.0), Budget(20, cancelled=lambda: next(polls)))
    decoder = Decoder(model)
    decoder.prepare(cancelled, Prompt(prompt_of(19), prompt_of(4)))
    decoder.decode(cancelled, OPEN)
    again = run(model, prompt_of(19), policy(0.5), 20, session, prompt_of(4))
    assert again.written == run(model, prompt_of(19), policy(0.5), 20, after=prompt_of(4)).written


@pytest.mark.parametrize("spec", [SPEC, *BLOCKED.values(), STRICT], ids=lambda s: f"{s.regime.name.lower()}-{s.shift}")
def test_confidence_made_without_scores_writes_the_same(spec, monkeypatch):
    """What a card does, by the reference's formulas."""
    written, made = [], []
    for fused in (False, True):
        model = tiny_model(spec=spec)
        monkeypatch.setattr("remask.engine.decode.denoise.fuses", lambda _, fused=fused: fused)
        original = model.transformer.confidence
        monkeypatch.setattr(model.transformer, "confidence", lambda *a, o=original: made.append(len(a[0])) or o(*a))
        request = Request(Session(model.transformer.new_cache()), policy(0.3), Budget(20))
        decoder = Decoder(model)
        decoder.prepare(request, Prompt(prompt_of(30)))
        decoder.decode(request, OPEN)
        written.append((request.written, request.sureness))
        assert bool(made) is fused
    assert written[0][0] == written[1][0]
    torch.testing.assert_close(*(torch.tensor(sureness) for _, sureness in written))
