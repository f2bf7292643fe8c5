"""What a text is worth."""

import pytest

from remask.contract.messages import Reason
from remask.engine.decode.search.value import BROKEN_NATS, FOLLOWING, Aim, between, line_end, per_token


def decode(tokens):
    return "".join(chr(t) for t in tokens)


def encode(text):
    return [ord(letter) for letter in text]


@pytest.mark.parametrize(("text", "count", "left"), [("abcd", 4, ""), ("abc", 3, ""), ("", 0, ""), ("ab\n", 2, "\n")])
def test_a_text_may_end_inside_what_was_written(text, count, left):
    assert between(encode("abcd"), text, decode) == (count, left)


def test_a_token_that_the_end_cuts_is_encoded_anew():
    pieces = {1: "x", 2: ");\n"}
    assert between([1, 2], "x);", lambda tokens: "".join(pieces[t] for t in tokens)) == (1, ");")


@pytest.mark.parametrize(
    ("prefix", "text", "suffix", "end"),
    [("a\n", "  b", "c\n", "\n"), ("a\n", "  b\n", "c\n", ""), ("a =", " b", "\nc\n", ""), ("a\n", "b", "\nc", "")],
)
def test_a_line_of_its_own_gets_its_end(prefix, text, suffix, end):
    assert line_end(prefix, text, suffix) == end


def test_what_follows_counts_where_something_follows():
    assert per_token([-1.0, -2.0], 7) == pytest.approx(-1.5 * 7)
    assert Aim(encode=encode, suffix=" \n").following() == []
    assert Aim(encode=encode, suffix="\nreturn x + y\n").following() == encode("\nreturn x + y\n")[:FOLLOWING]


def test_holding_is_a_must_and_names_are_a_little():
    broken = Aim(holds=lambda text, reason: False).judged("x", Reason.END)
    unknown = Aim(unknown=lambda text: 1.0).judged("x", Reason.END)
    assert broken == -BROKEN_NATS
    assert -1.0 < unknown < 0.0
    assert Aim().judged("x", Reason.END) == 0.0
