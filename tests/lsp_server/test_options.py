"""Every option can be set, and a wrong one falls back to its default with a sentence."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from remask.lsp_server.engine_child import service_command
from remask.lsp_server.options import ServerOptions, kind_of, wire_name

RIGHT: dict[str, Any] = {
    "model": "/models/x",
    "adapter": "/models/adapter",
    "device": "cpu",
    "dtype": "float32",
    "shareEngine": False,
    "unloadAfterS": 60,
    "automatic": False,
    "multiline": "never",
    "steer": ["/v.safetensors:2"],
    "maxTokens": 7,
    "deadlineMs": 700,
    "candidates": 2,
    "automaticCandidates": 4,
    "debounce": "fixed",
    "debounceMs": 20,
    "guide": "Use pathlib.",
    "speculate": False,
    "disabledLanguages": ["go"],
    "exclude": ["*.min.js"],
    "context": False,
    "contextCharacters": 100,
    "fillCandidates": 1,
    "fillMaxTokens": 99,
    "fillDeadlineMs": 5000,
    "fillPreview": False,
    "statistics": False,
    "logLevel": "debug",
    "logText": True,
}


@pytest.mark.parametrize("one", dataclasses.fields(ServerOptions), ids=lambda one: one.name)
def test_every_option_goes_the_way_from_the_wire(one: Any) -> None:
    value = RIGHT[wire_name(one.name)]
    options, wrong = ServerOptions().updated({wire_name(one.name): value})
    assert not wrong
    expected = Path(value) if one.name in ("model", "adapter") else tuple(value) if isinstance(value, list) else value
    assert getattr(options, one.name) == expected != one.default


def test_all_options_at_once() -> None:
    options, wrong = ServerOptions().updated(RIGHT)
    assert not wrong
    assert len(RIGHT) == len(dataclasses.fields(ServerOptions))
    assert all(getattr(options, one.name) != one.default for one in dataclasses.fields(options))


@pytest.mark.parametrize("one", dataclasses.fields(ServerOptions), ids=lambda one: one.name)
def test_each_option_says_what_it_wants(one: Any) -> None:
    name = wire_name(one.name)
    options, (sentence,) = ServerOptions().updated({name: {"of": "nonsense"}})
    assert options == ServerOptions()
    assert f"Remask's option '{name}' is {kind_of(one).says}, not" in sentence


def test_what_belongs_to_the_editors_plugin_is_no_mistake() -> None:
    assert ServerOptions().updated({"command": "remask"}) == (ServerOptions(), [])


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
        ({"model": "a\0b"}, "the path of a folder"),
        ({"guide": "half of \ud83d"}, "'guide' is a text"),
        ({"device": ""}, "'device' is a word"),
        ({"max_tokens": 5}, "no option 'max_tokens'. Did you mean maxTokens"),
        ({"debouncems": 5}, "no option 'debouncems'. Did you mean debounceMs"),
        ({"colour": 5}, "no option 'colour'. All are listed in docs/settings.md."),
        ([1], "an object, not list"),
        ("x", "an object, not str"),
    ],
)
def test_a_wrong_option_is_said_and_its_default_taken(values: Any, said: str) -> None:
    options, wrong = ServerOptions().updated(values)
    assert options == ServerOptions()
    assert len(wrong) == 1
    assert said in wrong[0]
    assert len(wrong[0]) < 160, "it is shown in a window"


def test_what_the_client_leaves_out_stays_as_it_was() -> None:
    options, _ = ServerOptions(device="cuda", max_tokens=9).updated({"maxTokens": 8})
    assert (options.device, options.max_tokens) == ("cuda", 8)


def test_a_wrong_option_leaves_the_right_ones() -> None:
    options, wrong = ServerOptions().updated({**RIGHT, "maxTokens": -1})
    assert (options.device, options.max_tokens, len(wrong)) == ("cpu", ServerOptions().max_tokens, 1)


def test_the_home_of_a_user_who_is_not_there_stops_nothing() -> None:
    options, wrong = ServerOptions().updated({"model": "~nobody-of-this-name/m", "steer": ["~nobody-of-this-name/v:2"]})
    assert not wrong, "the engine says that there is no such file"
    command = service_command(options)
    assert command[command.index("--steer") + 1].endswith("~nobody-of-this-name/v:2")
