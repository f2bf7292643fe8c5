"""What an unverified canvas begins with instead of masks: the text that stood there, or one that is looked up.

It is denoised and judged like any other: see `denoise.review`.
"""

from __future__ import annotations

from remask.engine.decode.canvas import Canvas
from remask.engine.decode.drafters import LookupDrafter
from remask.engine.decode.policy import Source
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.request import Request

SHORTEST = 2  # tokens of a match that is looked up; one says too little


def begun(reader: Reader, request: Request, canvas: Canvas) -> Canvas:
    """The canvas with its first masks filled, where the policy wants that and the regime can doubt it afterwards."""
    if Source.SEEDED in request.policy.sources and reader.rescores:
        lookup = LookupDrafter(reader, request.guess, SHORTEST)
        canvas.start(lookup.propose(request, len(canvas)).tokens)
    return canvas
