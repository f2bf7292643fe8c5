"""Writes the texts for one hole and has them judged: prompt, decoder, gate, names.

Knows a decoder and a finisher; knows no grammar and no document.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from remask.contract.messages import NameFacts
from remask.engine.attempts import Attempt, Finisher
from remask.engine.decode.loop import Decoder
from remask.engine.decode.request import Request
from remask.engine.decode.search.found import Found
from remask.engine.decode.stop import StopRules
from remask.engine.judge.names import sentence
from remask.engine.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Writing:
    """Decodes holes that have all of this in common, and judges what comes of them."""

    prompt: Prompt
    rules: StopRules
    finisher: Finisher
    decode: Callable[[list[int]], str]

    def __call__(self, decoder: Decoder, hole: Request) -> list[Attempt]:
        """Read what the session lacks of the prompt, decode, and judge; several texts come of a search."""
        if hole.trace is not None:
            hole.trace.begin(hole.seed, self.decode)
        counts = decoder.prepare(hole, self.prompt)
        prompted = time.monotonic()
        if hole.trace is not None:
            hole.trace.prompted(counts)
        texts = decoder.texts(hole, self.rules)
        ms = round((time.monotonic() - prompted) * 1000, 1)
        first = partial(self._judged, hole, prompt=counts, prompted=prompted, searched=len(texts) > 1)
        costs = [(hole.forwards, ms), *[(0, 0.0)] * (len(texts) - 1)]  # the first one's are those of all
        return [first(text, forwards=n, decode_ms=m) for text, (n, m) in zip(texts, costs, strict=True)]

    def _judged(self, hole: Request, text: Found, *, searched: bool, **costs: Any) -> Attempt:
        finished = self.finisher.finish(text.text, text.reason)
        facts = NameFacts() if hole.budget.spent(0) is not None else self.finisher.facts(text.text, finished.text)
        if hole.trace is not None:
            hole.trace.judged("parser", text.text, finished.text, finished.reason.value, finished.detail)
            hole.trace.judged("names", text.text, finished.text, "", sentence(facts))
        return Attempt(
            text=finished.text,
            reason=finished.reason,
            detail=finished.detail,
            score=round(text.value if searched else hole.score, 4),
            names=facts,
            searched=searched,
            doubt=hole.doubter.fork(len(hole.written)).mean if hole.doubter is not None else 0.0,
            tokens=len(text.branch.written),
            **costs,
        )
