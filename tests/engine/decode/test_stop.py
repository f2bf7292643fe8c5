"""Where a completion ends. Each case: rule, suffix, text, the kept text and the reason (or None to go on)."""

from functools import partial

import pytest

from remask.contract.messages import Reason
from remask.engine.decode.stop import StopRules, first_line_end, fitted
from remask.grammars import grammar_for_language
from remask.grammars.blocks import block_end


def end_mark(draft):
    return draft.find("END") if "END" in draft else None


@pytest.mark.parametrize(
    ("rule", "suffix", "text", "kept", "reason"),
    [
        (Reason.LINE, "", "x = 1", None, None),
        (Reason.LINE, "", "x = 1\n", "x = 1", Reason.LINE),
        (Reason.LINE, "", "\n    x = 1\ny", "\n    x = 1", Reason.LINE),  # an empty rest of the line is no line yet
        (Reason.LINE, "", "\n\n", None, None),
        (Reason.BLOCK, "", "a\nb\n", None, None),
        (Reason.BLOCK, "", "a\nEND", "a\n", Reason.BLOCK),
        (Reason.BLOCK, "\n    return x\n", "a\n    return x\n", "a", Reason.SUFFIX),
        (Reason.BLOCK, "\n    return x\n", "a\n    return x", None, None),  # may still become longer
        (Reason.BLOCK, "\n    return x\n", "a\n    return xs\n", None, None),
        (Reason.BLOCK, "\n\n\n    return x\n", "a\n    return x  \nb", "a", Reason.SUFFIX),
        (Reason.BLOCK, "\n)\n", "a\n)\n", None, None),  # closing marks alone repeat all the time
        (Reason.BLOCK, ")\nvalue = 2\n", "a\nvalue = 2\n", "a", Reason.SUFFIX),
        (Reason.BLOCK, "\n    return x\n", "    return x\nb", None, None),  # its first line is the cursor's own
    ],
)
def test_stop_rules(rule, suffix, text, kept, reason):
    rules = StopRules(rule, suffix, first_line_end if rule is Reason.LINE else end_mark)
    stop = rules.check(text)
    assert (stop and text[: stop.length], stop and stop.reason) == (kept, reason)


def test_earliest_end_wins():
    rules = StopRules(Reason.LINE, "\nvalue = 2", first_line_end)
    assert rules.check("a = 1\nvalue = 2\n").reason is Reason.LINE


@pytest.mark.parametrize("body", ["            b()", "\t\t        b()", "\t\t\tb()"])
def test_the_end_is_found_in_a_draft_of_spaces_in_a_file_of_tabs(body):
    prefix = "class A:\n\tdef f(self):\n\t\t"
    rule = fitted(partial(block_end, grammar_for_language("python"), prefix), prefix, "\n")
    draft = f"if a:\n{body}\n"
    assert rule(draft) is None
    assert rule(f"{draft}x = 1\n") == len(draft)
