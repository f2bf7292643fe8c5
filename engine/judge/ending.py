"""Whether a draft may end where it does: the gate's word, heard while the canvas can still go on.

Knows texts and the gate; knows neither tokens nor the canvas.
"""

from __future__ import annotations

from remask.contract.messages import Reason
from remask.engine.judge.finish import readings, tidy
from remask.engine.judge.gate import Gate
from remask.grammars.fitting import Fitting


class Ending:
    """Judges the ends of one hole's drafts; what is wrong inside a draft is not its to say."""

    def __init__(self, gate: Gate, prefix: str, suffix: str) -> None:
        self._gate = gate
        self._prefix = prefix
        self._suffix = suffix

    def objection(self, text: str, reason: Reason) -> str:
        """What speaks against showing all of `text`, which ends for `reason`, in a few words; empty if nothing does.

        Nothing does where one reading of it holds (see `readings`), and an empty text is none that could be wrong.
        """
        draft = Fitting(self._prefix, self._suffix).fit(tidy(text, reason, self._suffix))
        if not draft.strip():
            return ""
        objections = [self._gate.objection(one) for one in readings(draft, self._prefix, self._suffix)]
        return "" if "" in objections else objections[0]
