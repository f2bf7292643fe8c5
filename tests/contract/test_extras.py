"""What a request may carry besides the text, and several candidates on the way back."""

import json

import pytest

from remask.contract.errors import InputError
from remask.contract.messages import (
    MAX_CONTEXT_CHARACTERS,
    MAX_DRAFT_CHARACTERS,
    MAX_GUIDE_CHARACTERS,
    MAX_NAME_CHARACTERS,
    Candidate,
    CompletionRequest,
    CompletionResult,
    Purpose,
    Reason,
    Snippet,
)


def request(**fields):
    return CompletionRequest(document="d", language="python", prefix="", **fields)


def test_context_purpose_and_candidates_go_there():
    asked = request(
        context=(Snippet("a.py", "def f(): ...", "recent"), Snippet("b.py", "😀")), purpose=Purpose.FILL, candidates=3
    )
    assert CompletionRequest.from_json(asked.to_json()) == asked


def test_a_request_without_them_is_as_it_was():
    assert request() == CompletionRequest.from_json('{"document": "d", "language": "python", "prefix": ""}')
    assert (request().candidates, request().context, request().purpose) == (1, (), Purpose.COMPLETE)


@pytest.mark.parametrize(
    "fields",
    [
        {"candidates": 0},
        {"candidates": 99},
        {"purpose": "fun"},
        {"context": "x"},
        {"context": [5]},
        {"context": [{"path": "a"}]},
        {"context": [{"path": "a", "text": 5}]},
        {"context": [{"path": "a", "text": "b", "more": "c"}]},
        {"context": [{"path": "a", "text": "x" * (MAX_CONTEXT_CHARACTERS + 1)}]},
        {"context": [{"path": "x" * (MAX_NAME_CHARACTERS + 1), "text": ""}]},
        {"language": "x" * (MAX_NAME_CHARACTERS + 1)},
        {"policy": "x" * (MAX_NAME_CHARACTERS + 1)},
        {"draft": 5},
        {"draft": "x" * (MAX_DRAFT_CHARACTERS + 1)},
        {"guide": ["x"]},
        {"guide": "x" * (MAX_GUIDE_CHARACTERS + 1)},
    ],
)
def test_anything_else_is_refused_in_a_few_words(fields):
    with pytest.raises(InputError) as refused:
        CompletionRequest.from_json(json.dumps({"document": "d", "language": "p", "prefix": "", **fields}))
    assert len(str(refused.value)) < 200


def test_candidates_come_back():
    result = CompletionResult(
        text="a", reason=Reason.END, language="p", score=-0.5, others=(Candidate("b", Reason.CUT, -1.0), Candidate("c"))
    )
    assert CompletionResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
