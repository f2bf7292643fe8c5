"""What may be shown of a draft."""

from dataclasses import dataclass

import pytest

from remask.contract.messages import Reason
from remask.engine.judge.finish import finish, tidy
from remask.engine.judge.gate import Gate
from remask.grammars import grammar_for_language


@dataclass
class Verdict:
    text: str
    reason: Reason | None = None
    detail: str = ""


class Fake:
    """Holds every draft but those named, of which it keeps the given part."""

    def __init__(self, refused=None):
        self.refused = refused or {}

    def check(self, draft, *, stopped=False):
        if draft not in self.refused:
            return Verdict(draft)
        kept = self.refused[draft]
        return Verdict(kept, Reason.CUT if kept else Reason.SYNTAX)


@pytest.mark.parametrize(
    ("draft", "ended", "suffix", "refused", "text", "reason"),
    [
        ("x = 1", Reason.LINE, "\n", {}, "x = 1", Reason.LINE),
        ("", Reason.END, "\n", {}, "", Reason.EMPTY),
        (" \n ", Reason.END, "", {}, "", Reason.EMPTY),
        ("x", Reason.CANCELLED, "", {}, "", Reason.CANCELLED),
        ("a)", Reason.LINE, ")", {"a)": ""}, "a", Reason.LINE),
        ("str(x)", Reason.LINE, ")", {}, "str(x)", Reason.LINE),
        (")", Reason.LINE, ")", {")": ""}, "", Reason.DUPLICATE),
        ("b )", Reason.LINE, "", {"b )": ""}, "", Reason.SYNTAX),
        ("a\nb(", Reason.BLOCK, "", {"a\nb(": "a\n"}, "a", Reason.CUT),
        ("a\nunfini", Reason.BUDGET, "\n", {}, "a", Reason.BUDGET),
        ("unfini", Reason.DEADLINE, "\n", {}, "unfini", Reason.DEADLINE),
        ("f(", Reason.DEADLINE, "\n", {"f(": ""}, "", Reason.DEADLINE),
        ("f(", Reason.BUDGET, "\n", {"f(": ""}, "", Reason.SYNTAX),
        ("a\nb(\nc", Reason.DEADLINE, "", {"a\nb(": "a\n"}, "a", Reason.CUT),
        ("x  \n\n", Reason.BLOCK, "\n", {}, "x", Reason.BLOCK),
    ],
)
def test_finish(draft, ended, suffix, refused, text, reason):
    finished = finish(draft, ended, "x", suffix, Fake(refused))
    assert (finished.text, finished.reason) == (text, reason)


def test_a_judge_without_time_is_no_syntax_error():
    class Late:
        def check(self, draft, *, stopped=False):
            return Verdict("", Reason.DEADLINE)

    assert finish("f(", Reason.LINE, "x", "\n", Late()).reason is Reason.DEADLINE


def test_without_a_judge_the_draft_is_only_trimmed():
    assert finish("x = (\n", Reason.LINE, "", "\n", None).text == "x = ("


@pytest.mark.parametrize(
    ("draft", "prefix", "suffix", "text"),
    [
        ("    a = 1", "def f():\n", "    b = 2\n", "    a = 1\n"),
        ("import re", "", "import json\n", "import re\n"),
        ("import re\n", "", "import json\n", "import re\n"),
        ("a = 1", "x = 0\n", "\n", "a = 1"),
        ("a, ", "f(", "b)\n", "a, "),
    ],
)
def test_a_line_before_code_is_a_line_of_its_own(draft, prefix, suffix, text):
    assert finish(draft, Reason.END, prefix, suffix, None).text == text


def test_white_space_before_more_code_stays():
    assert tidy("a ", Reason.END, "+ b") == "a "


def test_a_draft_of_spaces_is_judged_as_a_file_of_tabs_has_it():
    prefix = "def f(amount):\n\tx = 1\n\t"
    gate = Gate(grammar_for_language("python"), prefix, "\n")
    draft = "    if amount <= 0:\n            raise ValueError(amount)\n        return x"
    assert gate.check(draft).reason is not None
    finished = finish(draft, Reason.BLOCK, prefix, "\n", gate)
    assert finished.text == "if amount <= 0:\n\t\traise ValueError(amount)\n\treturn x"
    assert finished.reason is Reason.BLOCK
