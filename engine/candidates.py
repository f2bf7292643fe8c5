"""The texts for one hole: the greedy one, or those of a search; where more are wanted than these, drawn ones.

Where the model reads several sequences in one pass, texts are drawn side by side, each on a session of its own that
shares what is read already. Knows a decoder and what judges its texts; knows no grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from remask.engine.attempts import Attempt, distinct
from remask.engine.decode.lockstep import side_by_side
from remask.engine.decode.loop import Decoder
from remask.engine.decode.request import Request
from remask.engine.models.model import Model
from remask.engine.models.paged import PagedCache
from remask.engine.models.spec import Regime
from remask.engine.models.transformer import Transformer

TEMPERATURE = 0.7  # of drawn candidates; the common choice for sampling code autoregressively
TRIES_PER_CANDIDATE = 2  # drawn texts are often equal, or do not hold

Attempts = Callable[[Decoder, Request], list[Attempt]]
"""Decodes a hole and judges what comes of it."""


def candidates(
    model: Model, decoder: Decoder, hole: Callable[..., Request], write: Attempts, wanted: int
) -> list[Attempt]:
    """All attempts at a hole, until `wanted` different ones hold, or its time or the tries are up.

    hole: makes its requests; those of drawn texts with a `temperature` and a `seed`.
    """
    first = hole()
    attempts = write(decoder, first)
    if first.policy.branches > 1:
        return attempts
    seeds = range(1, TRIES_PER_CANDIDATE * (wanted - 1) + 1)
    step = at_once(model, first, wanted - 1)
    for at in range(0, len(seeds), step):
        if len(distinct(attempts)) >= wanted or first.budget.spent(0) is not None:
            break
        drawn = [hole(temperature=TEMPERATURE, seed=seed) for seed in seeds[at : at + step]]
        attempts += write(decoder, drawn[0]) if len(drawn) == 1 else side_by_side_attempts(model, drawn, write)
    return attempts


def at_once(model: Model, hole: Request, wanted: int) -> int:
    """How many of the `wanted` holes like this one are decoded at once: one where that saves nothing.

    A trace tells of one after the other, what is verified is measured and planned alone, and passes that read the whole
    text cost as much together as apart.
    """
    alone = hole.trace is not None or hole.policy.verifies or model.spec.regime is Regime.BIDIRECTIONAL
    if alone or not (isinstance(hole.session.cache, PagedCache) and model.transformer.joins):
        return 1
    return max(1, wanted)


def side_by_side_attempts(model: Model, holes: Sequence[Request], attempts: Attempts) -> list[Attempt]:
    """The attempts of all holes, each on a copy of the session that they share; their time counts once."""
    for hole in holes:
        hole.session = hole.session.fork()
    works = [partial(_one, model, hole, attempts) for hole in holes]
    found = [one for each in side_by_side(model.transformer, works) for one in each]
    ms = max((one.decode_ms for one in found), default=0.0)
    return [replace(one, decode_ms=0.0 if number else ms) for number, one in enumerate(found)]


def _one(model: Model, hole: Request, attempts: Attempts, transformer: Transformer) -> list[Attempt]:
    return attempts(Decoder(replace(model, transformer=transformer)), hole)
