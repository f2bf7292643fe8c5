"""Errors cross from the engine's process to the server's and stay what they are."""

import importlib
import json
import pkgutil

import pytest

import remask.grammars
from remask.contract import errors
from remask.contract.errors import EngineError, RemaskError

for module in pkgutil.iter_modules(remask.grammars.__path__, "remask.grammars."):
    importlib.import_module(module.name)

KINDS = list(errors._kinds(RemaskError))


def test_the_kinds_have_names_of_their_own() -> None:
    assert len({kind.__name__ for kind in KINDS}) == len(KINDS) > 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("advice", ["", "Look at 'é' again."])
def test_an_error_comes_back_as_it_was(kind: type[RemaskError], advice: str) -> None:
    error = kind("A sentence.", advice=advice)
    back = RemaskError.from_dict(json.loads(json.dumps(error.to_dict())))
    assert type(back) is kind
    assert (back.message, back.advice, str(back), back.exit_code) == (error.message, advice, str(error), kind.exit_code)


@pytest.mark.parametrize(
    "values", [{}, {"kind": "Exception"}, {"kind": None, "message": None}, {"kind": ["x"], "message": 5}]
)
def test_what_cannot_be_read_is_an_engine_error(values: dict[str, object]) -> None:
    back = RemaskError.from_dict(values)
    assert type(back) is EngineError
    assert back.message
