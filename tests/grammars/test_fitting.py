"""Drafts whose indentation is not the file's. A `|` marks the cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remask.grammars.fitting import Fitting

METHOD = "class A:\n\tdef f(self):\n\t\tx = 1\n\t\t|\n\n\tdef g(self):\n\t\treturn 2\n"
LOOP = "def f(xs):\n\tfor x in xs:\n\t\t|\n\treturn 1\n"
HEADER = "def f(xs):\n\tfor x in xs:  # all\n\t|\n"
UNDER = "class A:\n\tdef f(self):|\n"
BRACES = "function f() {\n\tif (a) {\n\t\t|\n\t}\n}\n"
DEEPER = "def f(a):\n\tif a:\n\t\tb()\n\t|\n"

BY_TABS = {
    "levels on top of the cursor's": (METHOD, "    return self.x", "return self.x"),
    "two spaces on top": (LOOP, "  total += x", "total += x"),
    "eight on top": (METHOD, "        return self.x", "return self.x"),
    "tabs again": (METHOD, "\t\treturn self.x", "return self.x"),
    "none": (METHOD, "return self.x", "return self.x"),
    "a body counted from the margin": (METHOD, "if a:\n            b()", "if a:\n\t\t\tb()"),
    "a body counted from the cursor": (METHOD, "if a:\n    b()\nc()", "if a:\n\t\t\tb()\n\t\tc()"),
    "all on top": (METHOD, "    if a:\n\t\t        b()\n\t\t    c()", "if a:\n\t\t\tb()\n\t\tc()"),
    "all on top of nothing": (LOOP, "    if a:\n        b()\n    c()", "if a:\n\t\t\tb()\n\t\tc()"),
    "a level is two": (METHOD, "if a:\n      b()\n    return 1", "if a:\n\t\t\tb()\n\t\treturn 1"),
    "a level is eight": (METHOD, f"if a:\n{' ' * 24}b()\n{' ' * 16}return 1", "if a:\n\t\t\tb()\n\t\treturn 1"),
    "deeper after a header": (HEADER, "    g(x)", "\tg(x)"),
    "much deeper after a header": (HEADER, "        g(x)\n        h(x)", "\tg(x)\n\t\th(x)"),
    "deeper as the block above": (DEEPER, "    c()", "c()"),
    "at the margin": ("def f(a):\n\tif a:\n\t\tb()\n|\n", "    c()", "\tc()"),
    "below a header": (UNDER, "\n        if a:\n            b()", "\n\t\tif a:\n\t\t\tb()"),
    "below a header, two spaces a level": (UNDER, "\n    if a:\n      b()", "\n\t\tif a:\n\t\t\tb()"),
    "an ended line": (LOOP, "    if x:\n            g(x)\n", "if x:\n\t\t\tg(x)\n"),
    "braces": (BRACES, "    for (;;) {\n            b();\n        }", "for (;;) {\n\t\t\tb();\n\t\t}"),
    "a star's column": (BRACES, "/**\n         * Sums.\n         */", "/**\n\t\t * Sums.\n\t\t */"),
}

AS_IT_IS = {
    "a file of spaces": ("def f():\n    if a:\n        |\n", "    b()\n    c()"),
    "two spaces a level": ("def f():\n  if a:\n    |\n", "if b:\n      c()"),
    "eight spaces a level": ("def f():\n        |\n", f"if b:\n{' ' * 16}c()"),
    "both kinds": ("def f():\n\tx\ndef g():\n    |\n", "    b()"),
    "tabs in a file of tabs": (LOOP, "if x:\n\t\t\tg(x)\n\telse:\n\t\tpass"),
    "a call that goes on": (BRACES, "a\n\t\t\t.b()\n\t\t\t.c()"),
    "a line that goes on": (BRACES, "\t.b()\n\t\t\t.c()"),
}


def fitted(marked: str, draft: str) -> str:
    prefix, _, suffix = marked.partition("|")
    return Fitting(prefix, suffix).fit(draft)


@pytest.mark.parametrize("name", BY_TABS)
def test_a_draft_of_spaces_fits_a_file_of_tabs(name: str) -> None:
    marked, draft, expected = BY_TABS[name]
    assert fitted(marked, draft) == expected


@pytest.mark.parametrize("name", AS_IT_IS)
def test_a_draft_that_fits_stays_as_it_is(name: str) -> None:
    marked, draft = AS_IT_IS[name]
    assert fitted(marked, draft) == draft


@pytest.mark.parametrize("unit", ["  ", "    ", " " * 8])
def test_tabs_in_a_file_of_spaces_become_its_levels(unit: str) -> None:
    marked = f"def f():\n{unit}if a:\n{unit * 2}|\n"
    assert fitted(marked, "if b:\n\t\t\tc()\n\t\td()") == f"if b:\n{unit * 3}c()\n{unit * 2}d()"


DRAFT = st.lists(
    st.tuples(st.sampled_from(["", "\t", "\t\t", "  ", "    ", " " * 8, "\t\t    "]), st.sampled_from(["a", "b:", ""])),
    min_size=1,
    max_size=5,
).map(lambda rows: "\n".join(indent + code for indent, code in rows))


@given(st.sampled_from([METHOD, LOOP, HEADER, UNDER, DEEPER]), DRAFT)
def test_only_white_space_changes_and_ends_are_found_again(marked: str, draft: str) -> None:
    prefix, _, suffix = marked.partition("|")
    fitting = Fitting(prefix, suffix)
    new = fitting.fit(draft)
    assert [row.strip() for row in new.split("\n")] == [row.strip() for row in draft.split("\n")]
    assert fitting.end_in(draft, len(new)) == len(draft)
    starts = [at + 1 for at, char in enumerate(new) if char == "\n"]
    assert [fitting.end_in(draft, at) for at in starts] == [at + 1 for at, char in enumerate(draft) if char == "\n"]
    assert fitting.fit(new) == new
