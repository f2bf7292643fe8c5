"""Where a completion ends, judged from its text alone: the line, the block, or what already follows the cursor.

Every rule is asked after every token, so that the end does not depend on how many tokens a pass wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from remask.contract.messages import Reason
from remask.grammars.fitting import Fitting

LEAST_SUFFIX_LINE = 4  # characters; shorter lines (`)`, `}`, `pass`) are often written on purpose

EndRule = Callable[[str], int | None]
"""The offset in a draft, in code points, where its line or block is finished, or None while it is not."""


def first_line_end(draft: str) -> int | None:
    """The end of the first line that holds something: the rule for one line without a grammar."""
    end = draft.find("\n", len(draft) - len(draft.lstrip()))
    return None if end < 0 else end


def line_before_code(prefix: str, draft: str) -> int | None:
    """The end of the first line where code follows the cursor on its line.

    From the start of a line on, the line end belongs to the draft: it pushes that code down.
    """
    end = draft.find("\n")
    if end < 0:
        return None
    return end + 1 if prefix.endswith("\n") or not prefix else end


def fitted(rule: EndRule, prefix: str, suffix: str) -> EndRule:
    """The rule for a draft whose indentation is made the file's before it is shown: see grammars/fitting."""
    fitting = Fitting(prefix, suffix)

    def end(draft: str) -> int | None:
        found = rule(fitting.fit(draft))
        return None if found is None else fitting.end_in(draft, found)

    return end if fitting.by_tabs else rule


@dataclass(frozen=True, slots=True)
class Stop:
    """A draft's text up to `length` code points is the completion."""

    length: int
    reason: Reason


class StopRules:
    """The rules for one hole: `end` finishes what `reason` (LINE or BLOCK) names, `reply_end` a chat's code block."""

    def __init__(self, reason: Reason, suffix: str, end: EndRule, reply_end: EndRule | None = None) -> None:
        self._reply_end = reply_end
        self._reason = reason
        self._end = end
        self._following = _first_line(suffix)

    def check(self, text: str) -> Stop | None:
        """Where `text` ends, or None while it may go on."""
        end = self._end(text)
        own = None if end is None else Stop(end, self._reason)
        closed = self._reply_end(text) if self._reply_end else None
        reply = None if closed is None else Stop(closed, Reason.END)
        found = [s for s in (reply, own, self._suffix(text)) if s is not None]
        return min(found, key=lambda s: s.length, default=None)

    def _suffix(self, text: str) -> Stop | None:
        """A complete new line repeats the first line that follows the hole."""
        if len(self._following.strip()) < LEAST_SUFFIX_LINE:
            return None
        start = text.find("\n") + 1
        while 0 < start < len(text):
            end = text.find("\n", start)
            if end < 0:
                return None
            if text[start:end].rstrip() == self._following:
                return Stop(start - 1, Reason.SUFFIX)
            start = end + 1
        return None


def _first_line(suffix: str) -> str:
    """The first line after the cursor's own that holds something, without trailing white space."""
    _, _, rest = suffix.partition("\n")
    return next((line.rstrip() for line in rest.split("\n") if line.strip()), "")
