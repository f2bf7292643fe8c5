"""From a raw draft to what may be shown: whole lines, the file's indentation, no overlap, and past the parser gate.

Knows texts and the gate; knows nothing of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from remask.contract.messages import Reason
from remask.engine.judge.gate import Gate
from remask.engine.judge.overlap import up_to_rest, without_overlap
from remask.grammars.fitting import Fitting

UNFINISHED = frozenset({Reason.BUDGET, Reason.DEADLINE})


@dataclass(frozen=True, slots=True)
class Finished:
    """What may be shown, and why it ends there or is empty; `detail` is one sentence for the log."""

    text: str
    reason: Reason
    detail: str = ""


def finish(draft: str, ended: Reason, prefix: str, suffix: str, judge: Gate | None) -> Finished:
    """Trim and judge a draft that ended for the reason `ended`; without a judge only trim it."""
    if ended is Reason.CANCELLED:
        return Finished("", ended)
    stopped = ended in UNFINISHED and "\n" not in draft.strip()  # else its last line was dropped
    whole = ended not in UNFINISHED and tidy(draft, ended, suffix).strip() == draft.strip()
    draft = Fitting(prefix, suffix).fit(tidy(draft, ended, suffix))
    if not draft.strip() and ended is Reason.DEADLINE:
        return Finished("", ended, "The time was up before anything was ready.")
    if not draft.strip():
        return Finished("", Reason.EMPTY, "The model has nothing to add here.")
    best = Finished("", Reason.SYNTAX, "Every reading of the draft would add a syntax error.")
    late = ended is Reason.DEADLINE  # a draft that had no time to become whole is not at fault
    for reading in readings(draft, prefix, suffix, whole=whole, judged=judge is not None):
        if not reading.strip():
            return Finished("", Reason.DUPLICATE, "All of the draft stands after the cursor already.")
        if judge is None:
            return Finished(reading, ended)
        verdict = judge.check(reading, stopped=stopped and reading.rstrip() == draft.rstrip())
        if verdict.reason is None:
            return Finished(verdict.text, ended, verdict.detail)
        late |= verdict.reason is Reason.DEADLINE
        if len(verdict.text.strip()) > len(best.text.strip()):
            best = Finished(verdict.text.rstrip(), verdict.reason, verdict.detail)
    if late and not best.text:
        return Finished("", Reason.DEADLINE, "The time was up before anything that holds was ready.")
    return best


def readings(draft: str, prefix: str, suffix: str, *, whole: bool = True, judged: bool = True) -> list[str]:
    """What the draft may mean between `prefix` and `suffix`, best first: the gate takes the first that holds.

    From the start of a line with code on it, a draft may be a line of its own even where the model left out its end.
    A draft may also have run past the closing marks behind the cursor: where it is not whole, that is thought of first,
    for its end is an accident. Only a judge can tell these marks from those of the draft's own brackets.
    """
    found = without_overlap(draft, suffix)
    shorter = [text for text in up_to_rest(draft, suffix) if text not in found] if judged else []
    found = [*found, *shorter] if whole else [*shorter, *found]
    own_line = (not prefix or prefix.endswith("\n")) and bool(suffix.partition("\n")[0].strip())
    return [f"{draft}\n", *found] if own_line and not draft.endswith("\n") else found


def tidy(draft: str, ended: Reason, suffix: str) -> str:
    """Drop a line that was not finished in time, white space before a line end, and what would run into code behind."""
    if ended in UNFINISHED and "\n" in draft.strip():
        draft = draft[: draft.rstrip().rfind("\n")]
    if not suffix.partition("\n")[0].strip():
        return draft.rstrip()
    # Code follows on the line: whole lines may go before it, anything else must not end in the middle of it.
    return draft if draft.endswith("\n") else draft.partition("\n")[0]
