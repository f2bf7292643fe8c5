"""Every option can be set, and a wrong one falls back to its default with a sentence."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from remask.lsp_server.options import ServerOptions

RIGHT = {"model": "/models/x", "device": "cpu", "dtype": "float32", "maxTokens": 7, "deadlineMs": 700}


def test_every_option_goes_the_way_from_the_wire() -> None:
    options, wrong = ServerOptions().updated(RIGHT)
    assert not wrong
    assert dataclasses.asdict(options) == {
        "model": Path("/models/x"),
        "device": "cpu",
        "dtype": "float32",
        "max_tokens": 7,
        "deadline_ms": 700,
    }
    assert len(RIGHT) == len(dataclasses.fields(ServerOptions))
    assert all(value != getattr(ServerOptions(), name) for name, value in dataclasses.asdict(options).items())


@pytest.mark.parametrize("values", [None, {}, {"model": None}, {"model": ""}])
def test_nothing_set_is_the_defaults(values: Any) -> None:
    assert ServerOptions().updated(values) == (ServerOptions(), [])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"maxTokens": 0}, "'maxTokens' is a whole number from 1 to 4096, not 0"),
        ({"maxTokens": True}, "'maxTokens'"),
        ({"maxTokens": "64"}, "'maxTokens'"),
        ({"deadlineMs": 1.5}, "'deadlineMs'"),
        ({"model": 5}, "the path of a folder"),
        ({"device": ""}, "'device' is a word"),
        ({"max_tokens": 5}, "no option 'max_tokens'"),
        ([1], "an object, not list"),
        ("x", "an object, not str"),
    ],
)
def test_a_wrong_option_is_said_and_its_default_taken(values: Any, said: str) -> None:
    options, wrong = ServerOptions().updated(values)
    assert options == ServerOptions()
    assert len(wrong) == 1
    assert said in wrong[0]


def test_what_the_client_leaves_out_stays_as_it_was() -> None:
    options, _ = ServerOptions(device="cuda", max_tokens=9).updated({"maxTokens": 8})
    assert (options.device, options.max_tokens) == ("cuda", 8)


def test_a_wrong_option_leaves_the_right_ones() -> None:
    options, wrong = ServerOptions().updated({**RIGHT, "maxTokens": -1})
    assert (options.device, options.max_tokens, len(wrong)) == ("cpu", ServerOptions().max_tokens, 1)
