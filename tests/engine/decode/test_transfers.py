"""A verifying or denoising pass waits for a card once: for its decisions."""

from collections import Counter

import pytest
import torch
from fake_card import CUDA, Card, OnCard
from tiny import PREFIX, SHAPE, SPEC, ByteTokenizer, random_weights

from remask.contract.messages import Reason
from remask.engine.decode.guard import Guard
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named
from remask.engine.decode.remask import Remasker
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.search.expand import Rivals
from remask.engine.decode.stop import StopRules
from remask.engine.judge.corrector import Corrector, part_shapes
from remask.engine.judge.doubter import Doubter
from remask.engine.models.inputs import Inputs
from remask.engine.models.model import Model
from remask.engine.models.paged import PagedCache, PagePool
from remask.engine.models.passes import Pass
from remask.engine.models.static_pass import StaticPasses
from remask.engine.models.transformer import Transformer
from remask.engine.prompt import Prompt
from remask.engine.session import Session

OPEN = StopRules(Reason.BLOCK, "", lambda _: None)
PROMPT = [PREFIX, *range(40, 60), *range(40, 50)]


def doubter():
    generator = torch.Generator().manual_seed(3)
    parts = {n: torch.randn(size, generator=generator) for n, size in part_shapes(2, SHAPE.width, 4).items()}
    return Doubter(Corrector(parts=parts, taps=(0, 1), threshold=0.5, strict=0.5, base="tiny"))


def decoded(weights, policy, tokens=24, **more):
    model = Model(SPEC, ByteTokenizer(), Transformer(SHAPE, weights), "tiny")
    request = Request(Session(model.transformer.new_cache()), policy_named(policy, SPEC), Budget(tokens), **more)
    decoder = Decoder(model)
    with torch.inference_mode():
        decoder.prepare(request, Prompt(PROMPT))
        read = request.forwards
        decoder.decode(request, OPEN)
    return request, request.forwards - read


@pytest.mark.parametrize(
    "policy",
    [
        "autoregressive",
        "default",
        "single_pass",
        "lookup",
        "default:ratio=0.3",
        "default:repetition=1.2",
        "bounded",
        "parallel",
    ],
)
@pytest.mark.parametrize("listening", [False, True], ids=["alone", "listening"])
def test_one_wait_a_pass(policy, listening):
    plain, _ = decoded(random_weights(seed=1), policy)
    with Card() as card:
        weights = {name: weight.as_subclass(OnCard) for name, weight in random_weights(seed=1).items()}
        more = {"rivals": Rivals()} if listening else {}
        decoded(weights, policy, tokens=1)
        before = len(card.waits)
        request, passes = decoded(weights, policy, **more)
        waits = Counter(card.waits[before:])
    assert request.written == plain.written
    assert request.sureness == pytest.approx(plain.sureness, abs=1e-5)
    assert waits.keys() == {"cpu"}
    assert waits["cpu"] <= passes  # a pass that only writes keys and values is not waited for
    assert policy == "parallel" or waits["cpu"] == passes


class Never:
    """Lets no text have a character at which it was told to break."""

    def __init__(self, character):
        self.character = character

    def breaks(self, written, pieces):
        return next((place for place, piece in enumerate(pieces) if self.character in piece), None)


def test_a_guard_is_asked_on_a_card_as_well():
    def written(weights, character):
        decode = ByteTokenizer().decode
        guard = Guard(Never(character), decode) if character else None
        return decoded(weights, "parallel", remasker=Remasker(None, decode, guard=guard))[0].written

    weights = random_weights(seed=1)
    free = written(weights, "")
    character = next(letter for letter in ByteTokenizer().decode(free) if letter.isprintable())
    guarded = written(weights, character)
    with Card():
        there = written({name: weight.as_subclass(OnCard) for name, weight in weights.items()}, character)
    assert character not in ByteTokenizer().decode(guarded)
    assert there == guarded


def test_a_search_waits_once_a_pass_too():
    plain, _ = decoded(random_weights(seed=1), "search:steps=3")
    with Card() as card:
        weights = {name: weight.as_subclass(OnCard) for name, weight in random_weights(seed=1).items()}
        decoded(weights, "search:steps=3", tokens=1)  # measures what passes cost
        before = len(card.waits)
        request, passes = decoded(weights, "search:steps=3")
        waits = Counter(card.waits[before:])
    assert request.written == plain.written
    assert waits == {"cpu": passes}


def test_what_a_corrector_head_says_is_brought_over_at_the_end():
    plain, _ = decoded(random_weights(seed=1), "default", doubter=doubter())
    with Card() as card:
        weights = {name: weight.as_subclass(OnCard) for name, weight in random_weights(seed=1).items()}
        judge = doubter()
        on_card = {name: part.as_subclass(OnCard) for name, part in judge._head.parts.items()}
        judge = Doubter(Corrector(parts=on_card, taps=(0, 1), threshold=0.5, strict=0.5, base="tiny"))
        request, passes = decoded(weights, "default", doubter=judge)
        assert Counter(card.waits) == {"cpu": passes}
        assert request.doubter.wrong == pytest.approx(plain.doubter.wrong, abs=1e-6)
        assert card.waits[passes:] == ["tolist"]
    assert request.written == plain.written


def test_what_a_pass_reads_is_sent_without_waiting():
    """Into the buffers of a captured size and as it comes, of one sequence and of several, with masks and without."""
    with Card() as card:
        pool = PagePool(SHAPE, dtype=torch.float32, device=CUDA)
        static = StaticPasses(pool, lambda inputs: inputs.positions[:, None].float(), 512)
        caches = [PagedCache(pool) for _ in range(2)]
        for cache in caches:
            cache.reserve(70)
            cache.advance(70)
        block, causal = Pass.canvas([1, 2, 3], 70, CUDA), Pass.causal([4, 5], 70, CUDA)
        for steps in ([block], [causal], [block, causal]):
            assert static.takes(steps, caches)
            got = static.forward(steps, caches[: len(steps)])
            assert len(got) == sum(len(step.tokens) for step in steps)
            Inputs.of(steps, caches[: len(steps)])
        assert not card.waits
        assert got[:, 0].tolist() == [70, 71, 72, 70, 71]


def test_the_card_that_is_not_there_sees_every_kind_of_wait():
    with Card() as card:
        there = torch.arange(4).as_subclass(OnCard)
        assert there.device.type == "cuda"
        assert there[1:3].add(1).device.type == "cuda"
        assert not card.waits
        for wait in (
            lambda: there.tolist(),
            lambda: int(there[0]),
            lambda: bool((there == 0).any()),
            lambda: there.cpu(),
            lambda: there[[0, 2]],
            lambda: there[torch.tensor([1])],
            lambda: there[there > 1],
            lambda: torch.tensor([1], device=there.device),
            lambda: torch.ones(2).to(there.device),
            lambda: there.nonzero(),
        ):
            before = len(card.waits)
            wait()
            assert len(card.waits) == before + 1
        assert there.cpu().device.type == "cpu"
