"""What is left of old texts at a cursor: after deleting, after typing over a ghost text, and nowhere else."""

from types import SimpleNamespace
from typing import Any

import pytest

from remask.lsp_server.fake_engine import FakeEngine
from remask.lsp_server.features.old_text import MOST_TYPED, OldText, left_of


def place(prefix, suffix="", key="a", selected=None):
    return SimpleNamespace(key=key, prefix=prefix, suffix=suffix, selected=selected)


def after(first, text, then):
    old = OldText()
    old.remember(first, text)
    return old.draft(then)


@pytest.mark.parametrize(
    ("first", "text", "then", "draft"),
    [
        (place("x = fo", ")"), "o(1", place("x = ", ")"), "foo(1"),  # backspaced
        (place("x = ", "old(1)\ny"), "", place("x = ", "\ny"), "old(1)"),  # deleted forwards
        (place("a = b", "c + d"), "", place("a = ", " + d"), "bc"),  # deleted on both sides
        (place("a = "), "b + c", place("a = "), "b + c"),  # asked once more
        (place("a = "), "b + c", place("a = b"), " + c"),  # typed along
        (place("a = "), "total(b, c)", place("a = sum"), "(b, c)"),  # another word
        (place("a = "), "b.total(c)", place("a = self.b."), "total(c)"),  # something put before it
        (place("a = "), "b", place("c = "), ""),
        (place("a = "), "b", place("a = ", "more"), ""),
        (place("a = "), "b" * 3 * MOST_TYPED, place("a = " + "b" * (MOST_TYPED + 1)), ""),
        (place("a = "), "b", place("a = b", key="other"), ""),
        (place("a = "), "bc", place("a = b", selected="bc"), ""),
    ],
)
def test_what_is_left(first, text, then, draft):
    assert after(first, text, then) == draft


def test_nothing_is_known_at_first():
    assert OldText().draft(place("a = ")) == ""


@pytest.mark.parametrize(
    ("text", "typed", "left"),
    [
        ("return total", "return sum", ""),
        ("total + 1", "+", ""),  # one letter alike says too little
        ("items[0].name", "rows[0]", ".name"),
        ("", "x", ""),
        ("ab", "abc", ""),
    ],
)
def test_left_of_a_text_typed_over(text, typed, left):
    assert left_of(text, typed) == left


URI = "file:///project/a.py"


async def test_the_engine_is_told_what_is_left(inside: Any) -> None:
    client = await inside("")
    client.engine = FakeEngine("total(b, c)")
    await client.initialize(options={"speculate": False})
    client.open(URI, "a = ")
    await client.complete(URI, 0, 4)
    client.type(URI, 2, 0, 4, "sum")
    await client.complete(URI, 0, 7)
    client.type(URI, 3, 0, 7, " ")
    await client.complete(URI, 0, 8)
    assert [one.draft for one in client.engine.requests[:2]] == ["", "(b, c)"]
