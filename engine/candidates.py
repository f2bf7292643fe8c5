"""Several texts drawn for one hole side by side: each on a session of its own that shares what is read already.

Where the model reads several sequences in one pass that costs hardly more than one of them. Knows no grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from remask.engine.attempts import Attempt
from remask.engine.decode.lockstep import side_by_side
from remask.engine.decode.loop import Decoder
from remask.engine.decode.request import Request
from remask.engine.models.model import Model
from remask.engine.models.paged import PagedCache
from remask.engine.models.spec import Regime
from remask.engine.models.transformer import Transformer

Attempts = Callable[[Decoder, Request], list[Attempt]]
"""Decodes a hole and judges what comes of it."""


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
