"""DiffusionGemma inside Remask's loop against transformers' own `generate`: same canvases, same number of passes."""

import pytest
import torch
from gemma import CANVAS, COLD, WINDOW, small_gemma, write_gemma

from remask.contract.messages import Reason
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import POLICIES
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.models.model import Model
from remask.engine.prompt import Prompt
from remask.engine.session import Session

transformers = pytest.importorskip("transformers", minversion="5.24")

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)


@pytest.fixture(scope="module")
def network():
    return small_gemma()


@pytest.fixture(scope="module")
def folder(network, tmp_path_factory):
    return write_gemma(tmp_path_factory.mktemp("gemma"), network)


@pytest.fixture(scope="module")
def model(folder):
    return Model.load(folder, dtype="float32")


def prompt_of(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (5 + seed % 19,), generator=generator).tolist()


def run(model, prompt, count, seed, session=None):
    session = session or Session(model.transformer.new_cache())
    request = Request(session, POLICIES["entropy_bound"], Budget(count), seed=seed)
    decoder = Decoder(model)
    counts = decoder.prepare(request, Prompt(prompt))
    decoder.decode(request, OPEN)
    return request, counts


@pytest.mark.parametrize("seed", range(20))
def test_same_canvas_and_passes_as_transformers_own_generate(model, network, seed):
    torch.manual_seed(seed)
    theirs = network.generate(torch.tensor([prompt_of(seed)]), max_new_tokens=CANVAS, **COLD, eos_token_id=[300])
    ours, counts = run(model, prompt_of(seed), CANVAS, seed)
    new = theirs.sequences[0, -CANVAS:].tolist()
    want = new[: new.index(300)] if 300 in new else new
    assert ours.written == want
    assert ours.forwards - counts.passes == round(CANVAS / float(theirs.tokens_per_forward))


def test_the_spec_holds_the_checkpoints_own_settings(model):
    spec = model.spec
    assert (spec.uniform.steps, spec.uniform.t_min, spec.uniform.t_max) == (6, 0.0, 1e-6)
    assert (spec.block_size, spec.mask_id, spec.family) == (CANVAS, -1, "diffusion-gemma")


@pytest.mark.parametrize("length", [4, WINDOW - 1, WINDOW, WINDOW + 1, 40])
def test_warm_equals_cold_around_the_sliding_window(model, length):
    """A sliding layer forgets what a shorter prompt would need: the cache is cut only where that is exact."""
    prompt = (prompt_of(3) * 9)[:length]
    session = Session(model.transformer.new_cache())
    run(model, [*prompt[:-1], 7, 8, 9], CANVAS, 1, session)
    warm, _ = run(model, prompt, 2 * CANVAS, 1, session)
    cold, _ = run(model, prompt, 2 * CANVAS, 1)
    assert warm.written == cold.written


def test_typing_on_runs_only_the_new_tokens(model):
    session = Session(model.transformer.new_cache())
    prompt = prompt_of(18) * 3
    request = Request(session, POLICIES["entropy_bound"], Budget(1))
    Decoder(model).prepare(request, Prompt(prompt))
    counts = Decoder(model).prepare(request, Prompt([*prompt, 5, 6]))
    assert (counts.cached, counts.run) == (len(prompt), 2)


@pytest.mark.parametrize("polls", [1, 2])
def test_a_canvas_that_was_not_finished_is_no_text(model, polls):
    answers = iter([False] * polls + [True] * 99)
    seen = []
    request = Request(
        Session(model.transformer.new_cache()),
        POLICIES["entropy_bound"],
        Budget(CANVAS, cancelled=lambda: next(answers)),
        on_draft=seen.append,
    )
    decoder = Decoder(model)
    request.pending = []
    decoder._reader.prepare(request, Prompt(prompt_of(3)), lambda: False)
    text, reason = decoder.decode(request, OPEN)
    assert (text, reason, request.written) == ("", Reason.CANCELLED, [])
    assert not any(seen)
