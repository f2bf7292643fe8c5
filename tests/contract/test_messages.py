"""Requests and results survive the wire, and nothing out of bounds does."""

import json

import pytest

from remask.contract.errors import EngineError, InputError, ModelError, RemaskError, StorageError
from remask.contract.messages import (
    Candidate,
    CompletionRequest,
    CompletionResult,
    NameFacts,
    PromptCounts,
    Reason,
    Timing,
)

REQUEST = {"document": "a.py", "language": "python", "prefix": "x = "}


def test_request_round_trip():
    request = CompletionRequest(**REQUEST, suffix="é😀\n", max_tokens=7)
    assert CompletionRequest.from_json(request.to_json()) == request


def test_result_round_trip():
    result = CompletionResult(
        text="1",
        reason=Reason.LINE,
        language="python",
        prompt=PromptCounts(5, 3, 1, 1),
        ms=Timing(3.0, 1.0, 2.0),
        others=(Candidate("2", Reason.END, -0.5),),
        names=NameFacts(4, 0.5, 0.25, ("zorp",)),
    )
    assert CompletionResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_a_result_without_facts_of_names_is_read():
    old = CompletionResult(text="1", reason=Reason.LINE, language="python").to_dict()
    del old["names"]
    assert CompletionResult.from_dict(old).names == NameFacts()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "3", "{", "[" * 100_000, json.dumps(REQUEST | {"extra": 1}), json.dumps({"document": "a"}),
        *(json.dumps(REQUEST | wrong) for wrong in (
            {"prefix": 3}, {"max_tokens": 0}, {"max_tokens": True}, {"max_tokens": 1.5}, {"deadline_ms": -1},
            {"extent": "page"}, {"candidates": 0}, {"name_facts": 1}, {"context": 3},
            {"context": [{"path": 1, "text": ""}]},
            {"prefix": "x" * 2_000_001}, {"prefix": "\ud800"},
        )),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_an_input_error(text):
    with pytest.raises(InputError):
        CompletionRequest.from_json(text)


def test_errors_are_one_tree_with_codes_of_their_own():
    kinds = [InputError, ModelError, EngineError, StorageError]
    assert all(issubclass(k, RemaskError) for k in kinds)
    assert len({k.exit_code for k in kinds}) == len(kinds)
    assert str(InputError("It is so.", advice="Do this.")) == "It is so. Do this."


def test_half_a_character_in_a_snippet_is_replaced() -> None:
    """A file's name may be no UTF-8, and an edit may bring half of an emoji; neither may stop all completions."""
    given = {"document": "a", "language": "python", "prefix": "", "context": [{"path": "a\udcff.py", "text": "\ud83d"}]}
    (snippet,) = CompletionRequest.from_json(json.dumps(given)).context
    assert (snippet.path, snippet.text) == ("a\ufffd.py", "\ufffd")
